// SPDX-License-Identifier: Apache-2.0

internal import CDialtoneExpat
internal import DialtonePlatform

/// One of expat's parsers, and what it read of the stanza that is open.
///
/// expat keeps each name that it reads for as long as the parser lives, and a server has as many names as it likes: a
/// parser that has read a lot (``isWorn``) is replaced by a copy, too, which begins without them.
///
/// It belongs to one ``XMLStreamReader``, which replaces it by a copy before it writes where it is not the only one who
/// has it; so nobody writes while somebody else reads.
final class XMLParser: @unchecked Sendable {
    /// Separates a name from its namespace; no text of XML can hold it.
    private static let separator: UInt8 = 1

    /// So much is read by one parser. A name takes up to eleven times its bytes (measured with expat 2.5.0), which are
    /// 3 MiB of one parser; and a copy, which reads no more than the start tag and a stanza again, costs little.
    static let mostBytes = 4 * XMLStreamReader.largestStanza

    private let handle: XML_Parser?
    private var events: [XMLStreamEvent] = []
    /// Why nothing more can be read.
    private(set) var violation: String?
    /// The open elements below the stream's.
    private var open: [XMLElement] = []
    private var isStreamOpen = false
    private var elements = 0
    /// How many bytes were read, and how many of them at the last place between stanzas.
    private(set) var fed = 0
    private var boundary = 0
    /// The stream's start tag and what stands before it, and the bytes since the last place between stanzas: with both
    /// a copy is where this one is.
    private var (header, current): ([UInt8], [UInt8]) = ([], [])

    init() {
        // The encoding is UTF-8, whatever the stream says of it (RFC 6120, section 11.6).
        handle = XML_ParserCreateNS("UTF-8", XML_Char(Self.separator))
        guard let handle else {
            violation = "there is no memory to read XML"
            return
        }
        cexpat_read_at_once(handle)
        XML_SetUserData(handle, Unmanaged.passUnretained(self).toOpaque())
        XML_SetElementHandler(
            handle, { XMLParser.of($0)?.begin($1, $2) }, { data, _ in XMLParser.of(data)?.end() })
        XML_SetCharacterDataHandler(handle) { XMLParser.of($0)?.text($1, $2) }
        XML_SetStartDoctypeDeclHandler(handle) { data, _, _, _, _ in
            XMLParser.of(data)?.stop("a document type, which XMPP forbids")
        }
        XML_SetCommentHandler(handle) { data, _ in XMLParser.of(data)?.stop("a comment, which XMPP forbids") }
        XML_SetProcessingInstructionHandler(handle) { data, _, _ in
            XMLParser.of(data)?.stop("a processing instruction, which XMPP forbids")
        }
    }

    /// One that is where the other is, and has its events for itself.
    convenience init(copying other: XMLParser) {
        self.init()
        feed(other.header[...])
        feed(other.current[...])
        (events, violation) = (other.events, other.violation ?? violation)
    }

    deinit { if let handle { XML_ParserFree(handle) } }

    private static func of(_ data: UnsafeMutableRawPointer?) -> XMLParser? {
        data.map { Unmanaged<XMLParser>.fromOpaque($0).takeUnretainedValue() }
    }

    /// Whether a copy is to read on.
    var isWorn: Bool { fed >= Self.mostBytes && violation == nil }

    var isBetweenStanzas: Bool { violation == nil && isStreamOpen && open.isEmpty && fed == boundary }

    /// What came since the last call.
    func takeEvents() -> [XMLStreamEvent] {
        defer { events = [] }
        return events
    }

    /// Reads up to some KiB.
    func feed(_ bytes: ArraySlice<UInt8>) {
        guard let handle, violation == nil, !bytes.isEmpty else { return }
        current += bytes
        let start = fed
        let status = bytes.withUnsafeBytes { bytes in
            XML_Parse(handle, bytes.baseAddress?.assumingMemoryBound(to: CChar.self), CInt(bytes.count), 0)
        }
        fed = start + bytes.count
        if status != XML_STATUS_OK, violation == nil {
            violation = "no well-formed XML (\(String(cString: XML_ErrorString(XML_GetErrorCode(handle)))))"
        }
        current.removeFirst(min(max(boundary - (fed - current.count), 0), current.count))
        if fed - boundary > XMLStreamReader.largestStanza { stop(Self.tooLarge) }
    }

    private static let tooLarge = "more than \(XMLStreamReader.largestStanza) bytes of one stanza"

    private func stop(_ problem: String) {
        guard violation == nil else { return }
        violation = problem
        if let handle { XML_StopParser(handle, XML_FALSE) }
    }

    /// A place between stanzas is behind the token that expat tells of.
    private func markBoundary() {
        guard let handle else { return }
        let place = Int(XML_GetCurrentByteIndex(handle)) + Int(XML_GetCurrentByteCount(handle))
        if place - boundary > XMLStreamReader.largestStanza { return stop(Self.tooLarge) }
        boundary = place
        elements = 0
    }

    // MARK: - What expat tells

    private typealias Attributes = UnsafeMutablePointer<UnsafePointer<XML_Char>?>

    private func begin(_ name: UnsafePointer<XML_Char>?, _ attributes: Attributes?) {
        guard violation == nil, let name else { return }
        let element = element(Self.split(name), attributes)
        guard isStreamOpen else {
            guard element.is("stream", XMPP.streams) else {
                return stop("<\(String(element.name.prefix(40)).printable)> in place of a stream")
            }
            isStreamOpen = true
            markBoundary()
            // What is before the boundary, of all that was read so far.
            header = Array(current.prefix(boundary))
            return events.append(.opened)
        }
        elements += 1
        guard open.count < XMLStreamReader.deepest, elements <= XMLStreamReader.mostElements else {
            return stop("a stanza of too many elements")
        }
        open.append(element)
    }

    private func element(_ name: (namespace: String, name: String), _ list: Attributes?) -> XMLElement {
        var attributes: [String: String] = [:]
        var index = 0
        while let name = list?[index], let value = list?[index + 1] {
            index += 2
            guard index <= 2 * XMLStreamReader.mostAttributes else {
                stop("an element of too many attributes")
                break
            }
            let (namespace, name) = Self.split(name)
            if namespace.isEmpty { attributes[name] = String(cString: value) }
        }
        return XMLElement(name: name.name, namespace: name.namespace, attributes: attributes)
    }

    private func end() {
        guard violation == nil else { return }
        guard var element = open.popLast() else {
            isStreamOpen = false
            return events.append(.closed)
        }
        // The end of an element of one tag is no token of its own.
        element.isOneTag = handle.map { XML_GetCurrentByteCount($0) == 0 } ?? false
        if open.isEmpty {
            events.append(.element(element))
            markBoundary()
        } else {
            open[open.count - 1].children.append(element)
        }
    }

    private func text(_ bytes: UnsafePointer<XML_Char>?, _ count: CInt) {
        guard violation == nil, let bytes else { return }
        let text = UnsafeBufferPointer(start: bytes, count: Int(count))
        if !open.isEmpty {
            open[open.count - 1].text += String(decoding: text.lazy.map { UInt8(bitPattern: $0) }, as: UTF8.self)
        } else if text.allSatisfy({ [0x20, 0x09, 0x0A, 0x0D].contains($0) }) {
            markBoundary()
        } else {
            stop("text between stanzas")
        }
    }

    /// A name as expat writes it: the namespace, the separator and the name, or the name alone.
    private static func split(_ text: UnsafePointer<XML_Char>) -> (namespace: String, name: String) {
        let text = String(cString: text)
        guard let place = text.utf8.firstIndex(of: separator) else { return ("", text) }
        return (String(text[..<place]), String(text[text.utf8.index(after: place)...]))
    }
}
