// SPDX-License-Identifier: Apache-2.0

/// Windows of time in the order in which they open, with the earliest end of any of them at hand.
///
/// An AVL tree whose nodes are numbers that the owner chose (``TimerCoalescer``'s slots) and whose links lie in one
/// array. Each node knows which window of its subtree ends first. All operations cost O(log n), whatever the windows
/// are: a hostile client chooses its own, so that no order of them may make the tree degenerate.
struct WindowTree: Sendable {
    private struct Node: Sendable {
        var open: Duration
        var due: Duration
        var wakesMachine: Bool
        var left: Int32 = none
        var right: Int32 = none
        var height: Int8 = 1
        /// The node of the subtree that is due first; among equals the one with the lower number.
        var first: Int32
        /// The same among those that wake the machine.
        var firstAlarm: Int32
    }

    private static let none: Int32 = -1

    private var nodes: [Node] = []
    private var root = none

    /// The window that ends first, of those that are in the tree.
    var first: Int? { root == Self.none ? nil : Int(nodes[Int(root)].first) }

    /// The window that ends first, of those that may wake a sleeping machine.
    var firstAlarm: Int? {
        guard root != Self.none, nodes[Int(root)].firstAlarm != Self.none else { return nil }
        return Int(nodes[Int(root)].firstAlarm)
    }

    /// The last instant not after `limit` at which a window opens.
    func lastOpening(notAfter limit: Duration) -> Duration? {
        var node = root
        var last: Duration?
        while node != Self.none {
            let open = nodes[Int(node)].open
            if open <= limit {
                last = open
                node = nodes[Int(node)].right
            } else {
                node = nodes[Int(node)].left
            }
        }
        return last
    }

    /// The windows that open at `limit` or before, in the order of their opening.
    func opened(by limit: Duration) -> [Int] {
        var found: [Int] = []
        var path: [Int32] = []
        var node = root
        while true {
            while node != Self.none {
                path.append(node)
                node = nodes[Int(node)].left
            }
            guard let next = path.popLast(), nodes[Int(next)].open <= limit else { return found }
            found.append(Int(next))
            node = nodes[Int(next)].right
        }
    }

    /// Puts a window in under a number that is not in the tree: one that was in it before, or the next one.
    mutating func insert(_ number: Int, _ window: ClosedRange<Duration>, wakesMachine: Bool) {
        let index = Int32(number)
        let node = Node(
            open: window.lowerBound, due: window.upperBound, wakesMachine: wakesMachine, first: index,
            firstAlarm: wakesMachine ? index : Self.none)
        if number == nodes.count { nodes.append(node) } else { nodes[number] = node }
        root = insert(index, under: root)
    }

    /// Takes the window with a number out; it must be in the tree.
    mutating func remove(_ number: Int) {
        root = remove(Int32(number), under: root)
    }
}

// MARK: - The tree

extension WindowTree {
    /// Whether a node stands before another: it opens earlier, or at the same time and has the lower number.
    private func precedes(_ node: Int32, _ other: Int32) -> Bool {
        let (open, otherOpen) = (nodes[Int(node)].open, nodes[Int(other)].open)
        return open == otherOpen ? node < other : open < otherOpen
    }

    private mutating func insert(_ node: Int32, under top: Int32) -> Int32 {
        guard top != Self.none else { return node }
        if precedes(node, top) {
            nodes[Int(top)].left = insert(node, under: nodes[Int(top)].left)
        } else {
            nodes[Int(top)].right = insert(node, under: nodes[Int(top)].right)
        }
        return balanced(top)
    }

    private mutating func remove(_ node: Int32, under top: Int32) -> Int32 {
        // The planner gives out a token with each entry, and takes none back twice.
        precondition(top != Self.none, "the planner removes only what it put in")
        if node == top {
            let (left, right) = (nodes[Int(top)].left, nodes[Int(top)].right)
            if right == Self.none { return left }
            if left == Self.none { return right }
            var heir = right
            while nodes[Int(heir)].left != Self.none { heir = nodes[Int(heir)].left }
            nodes[Int(heir)].right = remove(heir, under: right)
            nodes[Int(heir)].left = left
            return balanced(heir)
        }
        if precedes(node, top) {
            nodes[Int(top)].left = remove(node, under: nodes[Int(top)].left)
        } else {
            nodes[Int(top)].right = remove(node, under: nodes[Int(top)].right)
        }
        return balanced(top)
    }

    private func height(_ node: Int32) -> Int8 { node == Self.none ? 0 : nodes[Int(node)].height }

    /// Brings a node's figures up to date with its children, and the heights of these within one of each other.
    private mutating func balanced(_ top: Int32) -> Int32 {
        let (left, right) = (nodes[Int(top)].left, nodes[Int(top)].right)
        switch height(left) - height(right) {
        case 2:
            if height(nodes[Int(left)].left) < height(nodes[Int(left)].right) {
                nodes[Int(top)].left = rotatedLeft(left)
            }
            return rotatedRight(top)
        case -2:
            if height(nodes[Int(right)].right) < height(nodes[Int(right)].left) {
                nodes[Int(top)].right = rotatedRight(right)
            }
            return rotatedLeft(top)
        default:
            refresh(top)
            return top
        }
    }

    private mutating func rotatedLeft(_ top: Int32) -> Int32 {
        let right = nodes[Int(top)].right
        nodes[Int(top)].right = nodes[Int(right)].left
        nodes[Int(right)].left = top
        refresh(top)
        refresh(right)
        return right
    }

    private mutating func rotatedRight(_ top: Int32) -> Int32 {
        let left = nodes[Int(top)].left
        nodes[Int(top)].left = nodes[Int(left)].right
        nodes[Int(left)].right = top
        refresh(top)
        refresh(left)
        return left
    }

    private mutating func refresh(_ top: Int32) {
        var node = nodes[Int(top)]
        node.height = 1 + max(height(node.left), height(node.right))
        node.first = top
        node.firstAlarm = node.wakesMachine ? top : Self.none
        if node.left != Self.none { takeFirst(of: node.left, into: &node) }
        if node.right != Self.none { takeFirst(of: node.right, into: &node) }
        nodes[Int(top)] = node
    }

    private func takeFirst(of child: Int32, into node: inout Node) {
        node.first = earlier(node.first, nodes[Int(child)].first)
        node.firstAlarm = earlier(node.firstAlarm, nodes[Int(child)].firstAlarm)
    }

    private func earlier(_ node: Int32, _ other: Int32) -> Int32 {
        guard node != Self.none else { return other }
        guard other != Self.none else { return node }
        let (due, otherDue) = (nodes[Int(node)].due, nodes[Int(other)].due)
        if due == otherDue { return min(node, other) }
        return due < otherDue ? node : other
    }
}
