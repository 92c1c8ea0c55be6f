// SPDX-License-Identifier: Apache-2.0

@testable internal import Daemon
@testable internal import NetworkPath
@testable internal import Supervisor

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
        default:
            _ = CertificatePin(text)
            _ = ConnectionSettings.nameProblem(text)
        }
    }
}
