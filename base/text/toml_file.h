// Reading of TOML files other than machines: keys are checked against those that are allowed, and what is
// wrong ends in one line with file, line and key.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/text/toml.h"

namespace cm384::hw {

class TomlFile {
 public:
  // Throws InputError where the text is no TOML.
  TomlFile(std::string_view text, std::string name);

  const toml::table& root() const { return root_; }
  [[noreturn]] void refuse(const toml::node& node, std::string_view key, std::string_view what) const;
  // Every key of `table` is one of `allowed`.
  void check_keys(const toml::table& table, const std::vector<std::string>& allowed) const;

  // The value of `key`, or the fallback where it is not given; of the wrong kind is refused.
  double real(const toml::table& table, std::string_view key, double fallback) const;
  bool boolean(const toml::table& table, std::string_view key, bool fallback) const;
  std::string text(const toml::table& table, std::string_view key) const;  // required
  // The tables of [[key]], in the file or in one of its tables; none where it is not given.
  std::vector<const toml::table*> tables(std::string_view key) const { return tables(root_, key); }
  std::vector<const toml::table*> tables(const toml::table& table, std::string_view key) const;

 private:
  std::string name_;
  toml::table root_;
};

}  // namespace cm384::hw
