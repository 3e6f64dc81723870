// The reader of all our TOML files. What a file may hold is declared once, as a struct that describes itself
// (base/text/describe.h); what it does not say, or says wrongly, ends in one line with file, line and key.
//
//     struct Rule {                             // a [[field]] of the file
//       std::string name, direction = "both";
//       double relative = 0;
//       TomlPlace place;                        // set where there is one: for checks that come later
//       template <class Self, class Visitor>
//       static void describe(Self& self, Visitor&& visit) {
//         visit("name", self.name, "of the field; * fits anything", Required{});
//         visit("relative", self.relative, Range{0.0, kNoLimit}, "of the value");
//         visit("direction", self.direction, OneOf{{"both", "up", "down"}}, "which way it may not move");
//       }
//     };
//     struct Rules {
//       std::vector<Rule> rules;
//       TomlNode options;
//       ...
//         visit("field", self.rules);           // [[field]]; as struct instead of a list: [field]
//         visit("options", self.options, "of the command");  // of a form of its own: handed over as it is
//     };
//
//     const TomlFile file(text, name);
//     Rules rules;
//     file.read(rules);
//
// Keys in messages have the sections that they stand in before them, up to the file or its [[table]].
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/text/error.h"
#include "base/text/parameter_list.h"
#include "base/text/toml.h"

namespace cm384::hw {

class TomlFile;

// A value of a form of its own.
struct TomlNode {
  const toml::node* node = nullptr;  // nullptr: not given
  explicit operator bool() const { return node != nullptr; }
  const toml::node& operator*() const { return *node; }
};

// Where a struct was read. Points into the file, which has to live as long.
struct TomlPlace {
  const TomlFile* file = nullptr;
  const toml::table* table = nullptr;

  bool has(std::string_view key) const { return table->contains(key); }
  // At the line of the key, or of the table where that is not given.
  [[noreturn]] void refuse(std::string_view key, std::string_view what) const;
  // Runs `take`; an InputError of its own gets file, line and key in front.
  template <class Take>
  auto guarded(std::string_view key, Take&& take) const {
    try {
      return take();
    } catch (const InputError& error) {
      refuse(key, error.what());
    }
  }
};

// A value with where it comes from, { value, from, source }; or a value alone, which comes from the user.
struct TomlEntry {
  const toml::node* value = nullptr;
  const toml::table* table = nullptr;  // nullptr: a value alone
  std::string from, source;            // of a value alone: nothing, and file:line
};

// What a reader does its own way.
struct TomlRules {
  // Takes a value; otherwise it is TomlFile::assign().
  std::function<void(const Parameter&, const toml::node&)> take{};
  // What follows "no such parameter" of an unknown key, among the known ones; otherwise "no such key", which
  // one may be meant, and which are allowed.
  std::function<std::string(std::string_view, const std::vector<std::string>&)> unknown{};
  std::set<std::string, std::less<>> besides{};  // keys that somebody else reads
  bool others = false;                           // so are all that are not declared
};

class TomlFile {
 public:
  // Throws InputError where the text is no TOML.
  TomlFile(std::string_view text, std::string name);

  const std::string& name() const { return name_; }
  const toml::table& root() const { return root_; }
  std::string place_of(const toml::node& node) const;  // file:line
  [[noreturn]] void refuse(const toml::node& node, std::string_view key, std::string_view what) const;

  // Reads the file, or one of its tables, into a described struct. Throws InputError: file:line: key: what
  // was found; what is allowed.
  template <class Described>
  void read(Described& into, const TomlRules& rules = {}) const {
    read(root_, into, rules);
  }
  template <class Described>
  void read(const toml::table& table, Described& into, const TomlRules& rules = {}) const;

  // A scalar as the command line takes it; a list with commas between.
  std::string text_of(const toml::node& node, std::string_view key) const;
  // Gives the parameter the value, of the right kind and within its range.
  void assign(const Parameter& parameter, const toml::node& node) const;
  // The value as text that hw::assign takes. Refuses what is not of the parameter's kind, and lists.
  std::string text_of(const Parameter& parameter, const toml::node& node) const;
  // `more`: what else may stand beside value, from and source. `complete`: all three have to be given;
  // otherwise `from` and `source` may both be left out.
  TomlEntry entry_of(std::string_view key, const toml::node& node, bool complete,
                     const std::vector<std::string_view>& more = {}) const;

 private:
  class Lister;
  // What a table and its sections may hold.
  struct Content {
    struct Key {
      std::string name;  // with the sections that it stands in
      bool required = false;
      std::string allowed;  // what is missing where a required one is
      std::function<void(const toml::node&)> take;
    };
    std::vector<Key> keys;
    std::map<std::string, std::function<void(const toml::table&)>, std::less<>> sections;
    TomlRules rules;

    std::vector<std::string> names() const;
    const Key* find(std::string_view name) const;
  };
  void read_content(const toml::table& table, const std::string& prefix, const Content& content) const;
  [[noreturn]] void refuse_unknown(const toml::node& node, const std::string& key, const std::string& prefix,
                                   const Content& content) const;
  // The tables of [[key]].
  std::vector<const toml::table*> tables_of(const toml::node& node, std::string_view key) const;

  std::string name_;
  toml::table root_;
};

// Walks describe().
class TomlFile::Lister {
 public:
  Lister(const TomlFile& file, Content& content, std::string prefix = "")
      : file_(file), content_(content), prefix_(std::move(prefix)) {}

  template <class T, class... Rest>
  void operator()(std::string_view name, T& value, const Rest&... rest) {
    std::string key = prefix_ + std::string(name);
    constexpr bool kRequired = (std::is_same_v<Rest, Required> || ...);
    if constexpr (std::is_same_v<T, TomlNode>) {
      content_.keys.push_back(
          {std::move(key), kRequired, "", [&value](const toml::node& node) { value.node = &node; }});
    } else if constexpr (detail::IsValue<T>::value) {
      std::vector<Parameter> list;
      detail::Lister(list, prefix_)(name, value, rest...);
      content_.keys.push_back(
          {std::move(key), kRequired, kRequired ? allowed_text(list.front()) : "",
           [this_file = &file_, &content = content_, parameter = list.front()](const toml::node& node) {
             if (content.rules.take) {
               content.rules.take(parameter, node);
             } else {
               this_file->assign(parameter, node);
             }
           }});
    } else if constexpr (requires { typename T::value_type; }) {
      content_.keys.push_back(
          {key, kRequired, "[[" + key + "]]", [this_file = &file_, &value, key](const toml::node& node) {
             for (const toml::table* table : this_file->tables_of(node, key))
               this_file->read(*table, value.emplace_back());
           }});
    } else {
      content_.sections[key] = [this_file = &file_, &value](const toml::table& table) {
        set_place(*this_file, table, value);
      };
      T::describe(value, Lister(file_, content_, key + "."));
    }
  }

  template <class T>
  static void set_place(const TomlFile& file, const toml::table& table, T& value) {
    if constexpr (requires { value.place; }) value.place = {&file, &table};
  }

 private:
  const TomlFile& file_;
  Content& content_;
  std::string prefix_;
};

template <class Described>
void TomlFile::read(const toml::table& table, Described& into, const TomlRules& rules) const {
  Content content{{}, {}, rules};
  Lister::set_place(*this, table, into);
  Described::describe(into, Lister(*this, content));
  read_content(table, "", content);
}

}  // namespace cm384::hw
