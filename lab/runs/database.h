// A SQLite file of ours: opened or made with its tables, told apart from other databases, used by several
// processes at a time, also over a shared folder.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

struct sqlite3;
struct sqlite3_stmt;

namespace cm384::runs {

class Database {
 public:
  struct Kind {
    int application;                // tells files of this kind from other databases
    int version;                    // of the tables
    const char* what;               // "store of results", for messages
    const char* tables;             // statements that make them
    bool may_make = true;           // where there is no such file
    const char* upgrade = nullptr;  // statements that make them of those of the version before; none: refused
  };

  // Throws OutputError with the system's reason, InputError if the file is of another kind or version.
  Database(const std::string& path, const Kind& kind);
  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  const std::string& path() const { return path_; }
  sqlite3* handle() const { return handle_; }
  // Statements without values and answers. Throws OutputError.
  void run(const char* statements) const;
  // Throws OutputError, or InputError where the file is damaged, for a code that is no success.
  void check(int code) const;

 private:
  [[noreturn]] void fail() const;
  int pragma(const char* name) const;

  std::string path_;
  const char* what_;
  sqlite3* handle_ = nullptr;
};

// One statement with its values, in the order of its question marks.
class Statement {
 public:
  template <class... Values>
  Statement(const Database& database, const char* text, const Values&... values) : database_(database) {
    prepare(text);
    int at = 0;
    (bind(++at, values), ...);
  }
  ~Statement();
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  // Whether there is a (further) row.
  bool step();
  std::string text(int column) const;
  std::int64_t integer(int column) const;
  double real(int column) const;

 private:
  void prepare(const char* text);
  void bind(int at, const std::string& value);
  void bind(int at, std::int64_t value);
  void bind(int at, int value) { bind(at, std::int64_t{value}); }
  void bind(int at, double value);

  const Database& database_;
  sqlite3_stmt* statement_ = nullptr;
};

// Takes effect whole or not at all; writers come one after another. Within another one it is a part of that.
class Transaction {
 public:
  explicit Transaction(const Database& database);
  ~Transaction();
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;
  void commit();

 private:
  const Database& database_;
  bool part_;  // of a larger one
  bool committed_ = false;
};

}  // namespace cm384::runs
