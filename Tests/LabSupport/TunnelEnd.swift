// SPDX-License-Identifier: Apache-2.0

internal import CDialtoneLabSupport
package import DialtonePlatform

/// The program's end of a TUN device: while it is open the device has a carrier.
package struct TunnelEnd: ~Copyable, Sendable {
    private let descriptor: OwnedDescriptor

    /// Attaches to a device made by `ip tuntap add mode tun`, in the calling thread's network.
    package init(_ name: String) throws(SystemError) {
        descriptor = OwnedDescriptor(
            try retryingInterrupts("attaching to the TUN device \(name)") { clab_attach_tun(name) })
    }

    /// Lets go of the device.
    package consuming func close() {}
}
