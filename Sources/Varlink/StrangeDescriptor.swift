// SPDX-License-Identifier: Apache-2.0

internal import CPlatform
internal import Glibc
internal import Platform

/// Closing what a peer sent, without waiting for it.
///
/// `close(2)` can be made to wait: by a socket with `SO_LINGER` and bytes that its peer does not take, or by a file of
/// a file system in user space, which is asked to flush it and answers when it likes. A client that sends one must not
/// hold up the queue.
enum StrangeDescriptor {
    /// A thread that only closes needs little (`PTHREAD_STACK_MIN` is 16 KiB).
    private static let stackBytes = 256 * 1024

    /// Closes a descriptor and calls `completion`: at once for a socket; for anything else when a thread of its own has
    /// done so, however long that takes. How many there can be is for the caller to bound.
    @AgentQueue
    static func close(_ descriptor: consuming OwnedDescriptor, _ completion: @escaping @AgentQueue () -> Void) {
        var none = linger(l_onoff: 0, l_linger: 0)
        let length = socklen_t(MemoryLayout.size(ofValue: none))
        if setsockopt(descriptor.number, SOL_SOCKET, SO_LINGER, &none, length) == 0 {
            descriptor.close()
            return completion()
        }
        let parcel = Unmanaged.passRetained(Parcel(descriptor.release(), completion))
        var attributes = pthread_attr_t()
        pthread_attr_init(&attributes)
        defer { pthread_attr_destroy(&attributes) }
        pthread_attr_setdetachstate(&attributes, CInt(PTHREAD_CREATE_DETACHED))
        pthread_attr_setstacksize(&attributes, stackBytes)
        var thread = pthread_t()
        // Without a thread it is closed here: a wait that may come is better than a leak that is certain.
        if pthread_create(&thread, &attributes, closeParcel, parcel.toOpaque()) != 0 {
            _ = closeParcel(parcel.toOpaque())
        }
    }

    fileprivate final class Parcel: Sendable {
        let number: CInt
        let completion: @AgentQueue () -> Void

        init(_ number: CInt, _ completion: @escaping @AgentQueue () -> Void) {
            self.number = number
            self.completion = completion
        }
    }
}

/// What the thread does. A function and no closure: one from code on the queue would insist on being there.
private func closeParcel(_ argument: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
    guard let argument else { return nil }
    let parcel = Unmanaged<StrangeDescriptor.Parcel>.fromOpaque(argument).takeRetainedValue()
    OwnedDescriptor(parcel.number).close()
    AgentQueue.async(parcel.completion)
    return nil
}
