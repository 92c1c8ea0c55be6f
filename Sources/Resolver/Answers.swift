// SPDX-License-Identifier: Apache-2.0

internal import CDialtoneAres
internal import DialtonePlatform

extension Result<RecordSet, ResolutionError> {
    /// The answer in what c-ares called back with: a status, and the message that it comes from, if there is one.
    ///
    /// - Parameters:
    ///   - type: the type that was asked for.
    ///   - wasRejected: whether a server answered without saying anything about the name.
    ///   - now: the moment of the answer, on `BootClock`.
    init(status: CInt, message: [UInt8], type: RecordType, wasRejected: Bool, now: Duration) {
        let text = String(cString: ares_strerror(status))
        let answer = DNSMessage(message)
        let expires = answer?.negativeTimeToLive.map { now + .seconds(Int64($0)) }
        switch status {
        case ARES_SUCCESS:
            guard let answer else {
                self = .failure(ResolutionError(.serverFailure, String(cString: ares_strerror(ARES_EBADRESP))))
                return
            }
            let (contents, timeToLive) = answer.records(of: type)
            guard !contents.isEmpty else {
                let text = String(cString: ares_strerror(ARES_ENODATA))
                self = .failure(ResolutionError(.noRecord, text, expires: expires))
                return
            }
            self = .success(
                RecordSet(contents: contents, expires: now + .seconds(Int64(timeToLive)), source: .nameServer))
        case ARES_ENODATA:
            self = .failure(ResolutionError(.noRecord, text, expires: expires))
        case ARES_ENOTFOUND:
            self = .failure(ResolutionError(.noSuchName, text, expires: expires))
        case ARES_EBADNAME:
            self = .failure(ResolutionError(.malformed, text))
        case ARES_ESERVFAIL, ARES_EREFUSED, ARES_ENOTIMP, ARES_EFORMERR, ARES_EBADRESP:
            self = .failure(ResolutionError(.serverFailure, text))
        case ARES_ECONNREFUSED where wasRejected:
            // What 1.18 makes of SERVFAIL and REFUSED from the last server, as if nobody had been there.
            self = .failure(ResolutionError(.serverFailure, "The DNS servers could not or would not answer"))
        default:
            self = .failure(ResolutionError(.noAnswer, text))
        }
    }
}

extension ResolutionError {
    /// The error of a channel that could not be made.
    init(channel status: CInt) {
        self.init(.noAnswer, String(cString: ares_strerror(status)))
    }
}
