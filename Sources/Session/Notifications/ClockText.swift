// SPDX-License-Identifier: Apache-2.0

internal import DialtonePlatform
internal import DialtoneVarlink
internal import Glibc

/// Instants as the user's clock and calendar show them.
enum ClockText {
    /// The time of day; with the day of the week if that is another one, and as a date if it is further away.
    static func time(_ instant: Timestamp, now: Timestamp = .now()) -> String {
        let (then, today) = (parts(of: instant), parts(of: now))
        if (then.tm_year, then.tm_yday) == (today.tm_year, today.tm_yday) { return text(then, "%H:%M") }
        let distance = now - instant
        let isNear = max(distance, .zero - distance) < .seconds(6 * 86_400)
        return text(then, isNear ? "%a %H:%M" : "%Y-%m-%d %H:%M")
    }

    /// The date and the time of day.
    static func date(_ instant: Timestamp) -> String { text(parts(of: instant), "%Y-%m-%d %H:%M") }

    private static func parts(of instant: Timestamp) -> tm {
        var seconds = time_t(instant.milliseconds / 1000)
        var parts = tm()
        localtime_r(&seconds, &parts)
        return parts
    }

    private static func text(_ parts: tm, _ format: String) -> String {
        var parts = parts
        // The longest has 16 bytes.
        let bytes = [UInt8](unsafeUninitializedCapacity: 64) { buffer, count in
            count = buffer.withMemoryRebound(to: CChar.self) { characters in
                characters.baseAddress.map { strftime($0, characters.count, format, &parts) } ?? 0
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}
