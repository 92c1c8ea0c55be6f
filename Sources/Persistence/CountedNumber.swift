// SPDX-License-Identifier: Apache-2.0

internal import DialtoneConnection
internal import DialtonePlatform

extension FieldReader {
    /// The largest number that anything has been counted up to. What is above is damaged, and what is not can be
    /// counted on from.
    static let largestCount = ConnectionStateMachine.largestNumber
}

extension FieldReader.Value {
    /// As a number that is counted on from.
    func count() throws(DamagedState) -> UInt64 {
        let number = try unsigned()
        guard number <= FieldReader.largestCount else { throw DamagedState() }
        return number
    }
}
