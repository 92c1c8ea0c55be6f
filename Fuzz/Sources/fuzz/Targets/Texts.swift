// SPDX-License-Identifier: Apache-2.0

internal import DialtoneVarlink

@testable internal import DialtoneAPI
@testable internal import DialtoneAgent
@testable internal import DialtoneConfiguration
@testable internal import DialtoneConnection
@testable internal import DialtoneNetworkPath
@testable internal import DialtonePersistence
@testable internal import DialtonePlatform
@testable internal import DialtonePresentation

extension FuzzTarget {
    static func readText(_ text: String, as kind: Int) {
        switch kind {
        case 0:
            guard let remote = try? Remote(text) else { return }
            precondition((try? Remote(remote.description)) == remote, "\(remote) is not read as what was written")
        case 1: _ = Target(text: text)
        case 2:
            guard let address = IPAddress(text) else { return }
            precondition(IPAddress(address.description) == address)
        case 3:
            guard let duration = Duration(configurationText: text) else { return }
            precondition(Duration(configurationText: duration.configurationText) == duration)
        case 4:
            _ = try? [UInt8](escapedText: text)
            _ = try? BytePattern(escapedText: text)
        case 5: _ = TrafficClass(text)
        case 6:
            _ = CertificatePin(text)
            _ = ConnectionName.problem(text)
        case 7:
            guard let time = Timestamp(text) else { return }
            precondition(Timestamp(time.description) == time)
        default:
            let now = Timestamp(milliseconds: 1_800_000_000_000)
            _ = SinceText.instant(text, now: now, today: .init(year: 2027, month: 1, day: 15)) { _ in now }
            _ = DescriptorStore.number(of: text)
        }
    }
}
