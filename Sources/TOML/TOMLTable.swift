// SPDX-License-Identifier: Apache-2.0

/// A table while its document is being read: later lines may add to it.
final class TOMLTable {
    /// By what it came to be, which decides what may still be added to it.
    enum Origin {
        /// `[a]`, or the document as such. A second header for it is an error.
        case header
        /// The `a` of `[a.b]`; a header of its own may follow.
        case above
        /// The `a` of `a.b = 1`, to which only dotted keys and headers below it add.
        case dotted
    }

    /// What stands under a key.
    enum Member {
        /// A value that is complete, inline tables and arrays among them.
        case value(TOMLNode.Value)
        case table(TOMLTable)
        /// `[[a]]`, of which there is at least one.
        case tables(Tables)
    }

    /// An array of tables. A class, so that one more is appended to a long one without a copy.
    final class Tables {
        var all: [TOMLTable]

        init(_ first: TOMLTable) { all = [first] }
    }

    private struct Slot {
        let key: String
        let keyPosition: TOMLPosition
        let position: TOMLPosition
        let member: Member
    }

    var origin: Origin
    private(set) var position: TOMLPosition
    /// How many tables and arrays are around it.
    let depth: Int
    private var slots: [Slot] = []
    private var places: [String: Int] = [:]

    init(_ origin: Origin, at position: TOMLPosition, depth: Int) {
        self.origin = origin
        self.position = position
        self.depth = depth
    }

    /// What stands under `key`, and where the key was first.
    func member(_ key: String) -> (member: Member, keyPosition: TOMLPosition)? {
        places[key].map { (slots[$0].member, slots[$0].keyPosition) }
    }

    /// Adds a member under a key that is not there yet.
    func add(_ member: Member, under key: TOMLParser.Key, at position: TOMLPosition) {
        places[key.text] = slots.count
        slots.append(Slot(key: key.text, keyPosition: key.position, position: position, member: member))
    }

    /// Gives it the header that it did not have.
    func declare(at position: TOMLPosition) {
        origin = .header
        self.position = position
    }

    /// All of it, complete.
    var entries: [TOMLEntry] {
        slots.map { slot in
            let node =
                switch slot.member {
                case .value(let value): TOMLNode(value: value, position: slot.position)
                case .table(let table): table.node
                case .tables(let tables): TOMLNode(value: .array(tables.all.map(\.node)), position: slot.position)
                }
            return TOMLEntry(key: slot.key, keyPosition: slot.keyPosition, node: node)
        }
    }

    private var node: TOMLNode { TOMLNode(value: .table(entries), position: position) }
}
