#include "lab/runs/database.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <filesystem>
#include <system_error>

#include "base/text/error.h"

namespace cm384::runs {
namespace {

constexpr int kPatience = 60'000;  // ms that a statement waits for another process's transaction

}  // namespace

Database::Database(const std::string& path, const Kind& kind) : path_(path), what_(kind.what) {
  if (!kind.may_make && !std::filesystem::exists(path))
    throw InputError(fmt::format("{}: no such {}", path, kind.what));
  std::error_code ignored;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), ignored);
  try {
    check(sqlite3_open_v2(path.c_str(), &handle_, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, nullptr));
    sqlite3_busy_timeout(handle_, kPatience);
    // A rollback journal: the write-ahead log does not work across hosts.
    run("PRAGMA journal_mode = DELETE; PRAGMA synchronous = FULL");
    Transaction transaction(*this);
    if (pragma("PRAGMA application_id") != kind.application) {
      if (Statement(*this, "SELECT 1 FROM sqlite_schema").step())
        throw InputError(fmt::format("{}: is a database, but not a {}", path, kind.what));
      run(kind.tables);
      run(fmt::format("PRAGMA application_id = {}; PRAGMA user_version = {}", kind.application, kind.version)
              .c_str());
    }
    if (kind.upgrade != nullptr && pragma("PRAGMA user_version") == kind.version - 1) {
      run(kind.upgrade);
      run(fmt::format("PRAGMA user_version = {}", kind.version).c_str());
    }
    if (const int version = pragma("PRAGMA user_version"); version != kind.version)
      throw InputError(
          fmt::format("{}: is a {} of version {}; allowed: {}", path, kind.what, version, kind.version));
    transaction.commit();
  } catch (...) {
    sqlite3_close(handle_);
    throw;
  }
}

Database::~Database() {
  sqlite3_close(handle_);
}

void Database::fail() const {
  const int code = sqlite3_errcode(handle_), reason = sqlite3_system_errno(handle_);
  const std::string why = reason != 0 ? std::generic_category().message(reason) : sqlite3_errmsg(handle_);
  if (code == SQLITE_NOTADB || code == SQLITE_CORRUPT)
    throw InputError(fmt::format("{}: is not a {}: {}", path_, what_, sqlite3_errmsg(handle_)));
  throw OutputError(fmt::format("{}: cannot be written: {}", path_, why));
}

void Database::check(int code) const {
  if (code != SQLITE_OK && code != SQLITE_DONE && code != SQLITE_ROW) fail();
}

void Database::run(const char* statements) const {
  check(sqlite3_exec(handle_, statements, nullptr, nullptr, nullptr));
}

int Database::pragma(const char* name) const {
  Statement statement(*this, name);
  return statement.step() ? static_cast<int>(statement.integer(0)) : 0;
}

Statement::~Statement() {
  sqlite3_finalize(statement_);
}

void Statement::prepare(const char* text) {
  database_.check(sqlite3_prepare_v2(database_.handle(), text, -1, &statement_, nullptr));
}

bool Statement::step() {
  const int code = sqlite3_step(statement_);
  database_.check(code);
  return code == SQLITE_ROW;
}

std::string Statement::text(int column) const {
  const auto* bytes = static_cast<const char*>(sqlite3_column_blob(statement_, column));
  return {bytes, bytes + sqlite3_column_bytes(statement_, column)};
}

std::int64_t Statement::integer(int column) const {
  return sqlite3_column_int64(statement_, column);
}

double Statement::real(int column) const {
  return sqlite3_column_double(statement_, column);
}

void Statement::bind(int at, const std::string& value) {
  database_.check(
      sqlite3_bind_text64(statement_, at, value.data(), value.size(), SQLITE_TRANSIENT, SQLITE_UTF8));
}

void Statement::bind(int at, std::int64_t value) {
  database_.check(sqlite3_bind_int64(statement_, at, value));
}

void Statement::bind(int at, double value) {
  database_.check(sqlite3_bind_double(statement_, at, value));
}

Transaction::Transaction(const Database& database)
    : database_(database), part_(sqlite3_get_autocommit(database.handle()) == 0) {
  if (!part_) database_.run("BEGIN IMMEDIATE");
}

Transaction::~Transaction() {
  if (!part_ && !committed_) sqlite3_exec(database_.handle(), "ROLLBACK", nullptr, nullptr, nullptr);
}

void Transaction::commit() {
  if (!part_) database_.run("COMMIT");
  committed_ = true;
}

}  // namespace cm384::runs
