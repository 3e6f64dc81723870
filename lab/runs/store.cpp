#include "lab/runs/store.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <fstream>
#include <functional>
#include <sstream>

#include "base/text/content_hash.h"
#include "base/text/json.h"
#include "lab/runs/database.h"
#include "lab/runs/host.h"

namespace cm384::runs {
namespace {

constexpr std::int64_t kSilence = 120;  // s after which a claim of another host is void

constexpr const char* kTables = R"(
  CREATE TABLE results(
    key TEXT PRIMARY KEY, study TEXT NOT NULL, arguments TEXT NOT NULL,
    exit_code INTEGER NOT NULL, reason TEXT NOT NULL, document TEXT NOT NULL, profile TEXT NOT NULL,
    wall_s REAL NOT NULL, peak_MB REAL NOT NULL, finished TEXT NOT NULL,
    checksum TEXT NOT NULL DEFAULT '') WITHOUT ROWID;
  CREATE TABLE claims(
    key TEXT PRIMARY KEY, host TEXT NOT NULL, pid INTEGER NOT NULL, started INTEGER NOT NULL,
    beat INTEGER NOT NULL) WITHOUT ROWID;
)";

std::int64_t seconds_now() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::seconds>(now).count();
}

// What a row says, and of which point: rows are not exchanged either.
std::string checksum_of(const std::string& key, const Outcome& outcome) {
  return hash_of(fmt::format("{}\n{}\n{}\n{}\n{}", key, outcome.exit_code, outcome.reason,
                             hash_of(outcome.document), hash_of(outcome.profile)));
}

// Of a row that has no checksum: a result has rows.
bool is_whole(const Outcome& outcome) {
  if (outcome.failed() && outcome.document.empty()) return true;
  const Json document = Json::parse(outcome.document, nullptr, false);
  return document.is_object() && document.contains("rows") && document["rows"].is_array();
}

// When a process began, in ticks since boot: tells it from a later one of the same number. 0: none.
std::int64_t start_of(std::int64_t pid) {
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  std::string text;
  if (!std::getline(file, text)) return 0;
  // The name, in brackets, may hold blanks; the start is the 20th field after it.
  std::istringstream fields(text.substr(text.rfind(')') + 1));
  std::string field;
  for (int i = 0; i < 20; ++i) fields >> field;
  return std::atoll(field.c_str());
}

}  // namespace

bool Outcome::worth_another() const {
  // 1 check failed, 2 bad input, 3 hung: the same every time.
  return failed() && (exit_code < 1 || exit_code > 3);
}

struct Store::Database : runs::Database {
  explicit Database(const std::string& path)
      : runs::Database(path,
                       {.application = 0x434d3834,
                        .version = 2,
                        .what = "store of results",
                        .tables = kTables,
                        .upgrade = "ALTER TABLE results ADD COLUMN checksum TEXT NOT NULL DEFAULT ''"}) {}

  std::string host = host_name();
  std::int64_t pid = getpid(), started = start_of(getpid());
};

namespace {

// Whether the process behind a claim still works on it.
template <class Database>
bool is_alive(const Database& database, const Statement& claim) {
  if (claim.text(0) != database.host) return seconds_now() - claim.integer(3) < kSilence;
  return start_of(claim.integer(1)) == claim.integer(2);
}

}  // namespace

Store::Store(const std::string& path) : database_(std::make_unique<Database>(path)) {}

Store::~Store() = default;

const std::string& Store::path() const {
  return database_->path();
}

std::optional<Outcome> Store::find(const std::string& key) {
  Statement row(
      *database_,
      "SELECT exit_code, reason, document, profile, wall_s, peak_MB, checksum FROM results WHERE key = ?",
      key);
  if (!row.step()) return std::nullopt;
  Outcome outcome{
      static_cast<int>(row.integer(0)), row.text(1), row.text(2), row.text(3), row.real(4), row.real(5)};
  const std::string stated = row.text(6);
  const bool good = stated.empty() ? is_whole(outcome) : stated == checksum_of(key, outcome);
  return good ? std::optional(std::move(outcome)) : std::nullopt;
}

bool Store::busy(const std::string& key) {
  Statement claim(*database_, "SELECT host, pid, started, beat FROM claims WHERE key = ?", key);
  return claim.step() && is_alive(*database_, claim);
}

Store::Claim Store::claim(const std::string& key, bool again) {
  Transaction transaction(*database_);
  if (const auto known = find(key); known && !(again && known->worth_another())) return Claim::finished;
  if (busy(key)) return Claim::busy;
  Statement(*database_, "INSERT OR REPLACE INTO claims VALUES(?, ?, ?, ?, ?)", key, database_->host,
            database_->pid, database_->started, seconds_now())
      .step();
  transaction.commit();
  return Claim::taken;
}

void Store::beat() {
  Statement(*database_, "UPDATE claims SET beat = ? WHERE host = ? AND pid = ? AND started = ?",
            seconds_now(), database_->host, database_->pid, database_->started)
      .step();
}

void Store::put(const std::string& key, const std::string& study, const std::string& arguments,
                const Outcome& outcome) {
  Transaction transaction(*database_);
  Statement(*database_,
            "INSERT OR REPLACE INTO results VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, datetime('now'), ?)", key,
            study, arguments, outcome.exit_code, outcome.reason, outcome.document, outcome.profile,
            outcome.wall_s, outcome.peak_MB, checksum_of(key, outcome))
      .step();
  Statement(*database_, "DELETE FROM claims WHERE key = ?", key).step();
  transaction.commit();
}

void Store::together(const std::function<void()>& work) {
  Transaction transaction(*database_);
  work();
  transaction.commit();
}

void Store::release(const std::string& key) {
  Statement(*database_, "DELETE FROM claims WHERE key = ?", key).step();
}

}  // namespace cm384::runs
