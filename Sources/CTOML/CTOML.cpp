// SPDX-License-Identifier: Apache-2.0

#include "CTOML.h"

#include <sstream>
#include <string>
#include <string_view>
#include <toml++/toml.h>

// An exception must not cross into Swift. With this the parser returns its errors (Package.swift sets it), and the
// `noexcept` below turns the one exception that is left, no memory, into what Swift does then: an end.
static_assert(!TOML_EXCEPTIONS, "the package builds toml++ without exceptions");

namespace {

ctoml_text text(std::string_view view) { return {view.data(), view.size()}; }

ctoml_position position(const toml::source_position &at) { return {at.line, at.column}; }

struct Walk {
    void *context;
    ctoml_visited visited;

    void visit(const toml::node &node, const toml::key *key) const {
        ctoml_node out{};
        out.position = position(node.source().begin);
        if (key) {
            out.key = text(key->str());
            out.key_position = position(key->source().begin);
        }
        node.visit([&](const auto &value) { emit(out, value); });
    }

    void emit(ctoml_node &out, const toml::value<std::string> &value) const {
        out.kind = CTOML_STRING;
        out.text = text(*value);
        visited(context, &out);
    }

    void emit(ctoml_node &out, const toml::value<int64_t> &value) const {
        out.kind = CTOML_INTEGER;
        out.integer = *value;
        visited(context, &out);
    }

    void emit(ctoml_node &out, const toml::value<double> &value) const {
        out.kind = CTOML_FLOAT;
        out.number = *value;
        visited(context, &out);
    }

    void emit(ctoml_node &out, const toml::value<bool> &value) const {
        out.kind = CTOML_BOOLEAN;
        out.boolean = *value;
        visited(context, &out);
    }

    void emit(ctoml_node &out, const toml::array &array) const {
        out.kind = CTOML_ARRAY;
        visited(context, &out);
        for (const auto &member : array) visit(member, nullptr);
        end();
    }

    void emit(ctoml_node &out, const toml::table &table) const {
        out.kind = CTOML_TABLE;
        visited(context, &out);
        for (const auto &[key, member] : table) visit(member, &key);
        end();
    }

    // Dates, times and both together.
    template <typename T> void emit(ctoml_node &out, const toml::value<T> &value) const {
        std::ostringstream stream;
        stream << *value;
        const std::string written = stream.str();
        out.kind = CTOML_TIME;
        out.text = text(written);
        visited(context, &out);
    }

    void end() const {
        ctoml_node out{};
        out.kind = CTOML_END;
        visited(context, &out);
    }
};

}  // namespace

extern "C" void ctoml_parse(
    ctoml_text document, void *context, ctoml_visited visited, ctoml_refused refused) noexcept {
    const auto result = toml::parse(std::string_view{document.bytes, document.length});
    if (!result) {
        refused(context, position(result.error().source().begin), text(result.error().description()));
        return;
    }
    Walk{context, visited}.visit(result.table(), nullptr);
}
