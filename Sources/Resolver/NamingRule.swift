// SPDX-License-Identifier: Apache-2.0

/// A rule that leads from a name to another one, or to a URI, as a NAPTR record says it (RFC 3403, section 4.1).
package struct NamingRule: Hashable, Sendable {
    /// Rules with a lower number are processed first.
    package var order: UInt16
    /// Among rules of one order, those with a lower number are preferred.
    package var preference: UInt16
    /// What follows, in letters of either case: "s" asks for SRV records next, "a" for addresses, "u" makes a URI.
    package var flags: String
    /// What it leads to, as "SIP+D2T" for SIP over TCP (RFC 3263, section 4.1), in letters of either case.
    package var service: String
    /// How to rewrite what was asked, as it is spelled there. Empty where ``replacement`` says it.
    package var regexp: String
    /// The name to ask for next as it is spelled there, without a final dot. Empty for the root ("."), which stands
    /// there where ``regexp`` says it.
    package var replacement: String
}
