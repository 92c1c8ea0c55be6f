// SPDX-License-Identifier: Apache-2.0

import DialtonePlatform
import Dispatch
import Testing

@testable import Reachability

struct CallbackGateTests {
    /// On `DispatchQueue.global()`, say: an older path would overtake a newer one, and stay the last.
    @Test func `on a concurrent queue callbacks come in order and one at a time`() async {
        let queue = DispatchQueue(label: "callbacks", attributes: .concurrent)
        let keep = Lock<CallbackGate<Int>?>(nil)
        let log = Lock((running: 0, most: 0, numbers: [Int]()))
        await withCheckedContinuation { continuation in
            let gate = CallbackGate<Int>(to: queue) { number in
                log.withLock {
                    $0.running += 1
                    $0.most = max($0.most, $0.running)
                    $0.numbers.append(number)
                }
                // The next one, if it was under way by now, would be seen beside this one.
                for _ in 0..<100 { log.withLock { _ in } }
                log.withLock { $0.running -= 1 }
                if number == 200 { continuation.resume() }
            }
            for number in 1...200 { gate.deliver(number) }
            keep.withLock { $0 = gate }
        }
        log.withLock {
            #expect($0.most == 1)
            #expect($0.numbers == Array(1...200))
        }
    }

    @Test func `what waits when the gate is shut is not called`() async {
        let queue = DispatchQueue(label: "callbacks")
        let calls = Lock(0)
        let gate = CallbackGate<Int>(to: queue) { _ in calls.withLock { $0 += 1 } }
        queue.suspend()
        for number in 1...3 { gate.deliver(number) }
        gate.shut()
        queue.resume()
        // Each callback that is done with puts the word for the next at the end of the queue.
        for _ in 0..<4 {
            await withCheckedContinuation { continuation in queue.async { continuation.resume() } }
        }
        #expect(calls.withLock { $0 } == 0)
    }

    @Test func `a callback may shut its own gate`() async {
        let queue = DispatchQueue(label: "callbacks")
        let numbers = Lock([Int]())
        let keep = Lock<CallbackGate<Int>?>(nil)
        await withCheckedContinuation { continuation in
            let gate = CallbackGate<Int>(to: queue) { number in
                numbers.withLock { $0.append(number) }
                guard number == 2 else { return }
                keep.withLock { $0 }?.shut()
                queue.async { queue.async { continuation.resume() } }
            }
            keep.withLock { $0 = gate }
            queue.suspend()
            for number in 1...3 { gate.deliver(number) }
            queue.resume()
        }
        #expect(numbers.withLock { $0 } == [1, 2])
    }
}
