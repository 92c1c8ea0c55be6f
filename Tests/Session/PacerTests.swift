// SPDX-License-Identifier: Apache-2.0

import DialtoneDistributor
import Testing

@testable import DialtoneSession

/// What paces apps on the session bus.
struct PacerTests {
    private func app(_ name: String, in sandbox: String? = nil) -> AppIdentity {
        AppIdentity(name: name, sandbox: sandbox)
    }

    @Test func `an account registers so often at once, and then once a second`() {
        var pacer = RegistrationPacer()
        var admitted = (0..<100).count { pacer.admits(app("a.n\($0)", in: "flatpak:a"), at: .zero) }
        #expect(admitted == RegistrationPacer.burst, "whatever names it takes")
        let others = [app("a.n1", in: "snap:a"), app("a.n1")].map { pacer.admits($0, at: .zero) }
        #expect(others == [true, true])
        admitted = (1...1000).count { pacer.admits(app("a.b", in: "flatpak:a"), at: .milliseconds($0 * 100)) }
        #expect(admitted == 100)
        admitted = (0..<100).count { _ in pacer.admits(app("a.b", in: "flatpak:a"), at: .seconds(1000)) }
        #expect(admitted == RegistrationPacer.burst)
    }

    @Test func `accounts beyond those that are remembered wait for one to be forgotten`() {
        var pacer = RegistrationPacer()
        let all = 2 * RegistrationPacer.mostAccounts
        let admitted = (0..<all).count { pacer.admits(app("a.n\($0)"), at: .zero) }
        #expect(admitted == RegistrationPacer.mostAccounts)
        let (known, new) = (pacer.admits(app("a.n0"), at: .zero), pacer.admits(app("a.b"), at: .zero))
        let later = pacer.admits(app("a.b"), at: .seconds(2))
        #expect(known && !new && later)
    }

    @Test func `refusals are told so often at once, and then once a minute with the count of others`() {
        var pacer = RefusalPacer(at: .zero)
        var told = (0..<100).compactMap { _ in pacer.admit(at: .zero) }
        #expect(told == Array(repeating: 0, count: RefusalPacer.burst))
        told = (1...600).compactMap { pacer.admit(at: .seconds($0)) }
        #expect(told == [100 - RefusalPacer.burst + 59] + Array(repeating: 59, count: 9))
    }
}
