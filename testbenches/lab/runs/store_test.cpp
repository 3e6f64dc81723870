// The store between processes: claims, results, what is refused.
#include "lab/runs/store.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <sqlite3.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/text/error.h"

namespace cm384::runs::store_test {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class StoreTest : public ::testing::Test {
 protected:
  StoreTest() { fs::create_directories(folder_); }
  ~StoreTest() override { fs::remove_all(folder_); }
  std::string path(const std::string& name = "store.sqlite") const { return (folder_ / name).string(); }
  fs::path folder_ = fs::path(::testing::TempDir()) / ("cm384_store_test." + std::to_string(getpid()));
};

// What a process of its own does, to its end.
template <class Work>
int in_another_process(Work&& work) {
  const pid_t pid = fork();
  if (pid == 0) _exit(work());
  int status = 0;
  waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST_F(StoreTest, GivesBackWhatWasPut) {
  const Outcome outcome{3, "hung", std::string("{}\0x", 4), "profile", 1.5, 200};
  {
    Store store(path());
    EXPECT_FALSE(store.find("k"));
    EXPECT_EQ(store.claim("k", false), Store::Claim::taken);
    store.put("k", "dispatch", "dispatch --ranks=8", outcome);
    EXPECT_FALSE(store.busy("k"));
  }
  Store again(path());
  const auto found = again.find("k");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->exit_code, 3);
  EXPECT_EQ(found->reason, "hung");
  EXPECT_EQ(found->document, outcome.document);
  EXPECT_EQ(found->profile, "profile");
  EXPECT_EQ(found->wall_s, 1.5);
  EXPECT_EQ(found->peak_MB, 200);
  EXPECT_EQ(again.claim("k", false), Store::Claim::finished);
  EXPECT_EQ(again.claim("k", true), Store::Claim::finished) << "a hang is the same every time";
}

TEST_F(StoreTest, WhatWasKilledMayRunAgain) {
  Store store(path());
  store.put("k", "", "", {137, "ended by signal 9", "", "", 0, 0});
  EXPECT_EQ(store.claim("k", false), Store::Claim::finished);
  EXPECT_EQ(store.claim("k", true), Store::Claim::taken);
}

TEST_F(StoreTest, WhatIsDoneTogetherTakesEffectAsAWhole) {
  Store store(path());
  const auto both = [&](bool breaks) {
    store.together([&] {
      EXPECT_EQ(store.claim("k", false), Store::Claim::taken);
      store.put("l", "", "", {});
      if (breaks) throw InputError("broken off");
    });
  };
  EXPECT_THROW(both(true), InputError);
  EXPECT_FALSE(store.busy("k"));
  EXPECT_FALSE(store.find("l"));
  both(false);
  EXPECT_EQ(in_another_process([&] { return Store(path()).busy("k") && Store(path()).find("l") ? 0 : 1; }),
            0);
}

TEST_F(StoreTest, AClaimOfALivingProcessHolds) {
  Store store(path());
  ASSERT_EQ(store.claim("k", false), Store::Claim::taken);
  EXPECT_EQ(in_another_process([&] {
              Store other(path());
              return other.claim("k", false) == Store::Claim::busy &&
                             other.claim("l", false) == Store::Claim::taken
                         ? 0
                         : 1;
            }),
            0);
  store.release("k");
  EXPECT_EQ(
      in_another_process([&] { return Store(path()).claim("k", false) == Store::Claim::taken ? 0 : 1; }), 0);
}

TEST_F(StoreTest, AClaimOfADeadProcessIsVoid) {
  EXPECT_EQ(
      in_another_process([&] { return Store(path()).claim("k", false) == Store::Claim::taken ? 0 : 1; }), 0);
  Store store(path());
  EXPECT_FALSE(store.busy("k"));
  EXPECT_EQ(store.claim("k", false), Store::Claim::taken);
}

TEST_F(StoreTest, AClaimOfAnEarlierProcessWithThisNumberIsVoid) {
  Store store(path());
  ASSERT_EQ(store.claim("k", false), Store::Claim::taken);
  ASSERT_TRUE(store.busy("k"));
  sqlite3* database = nullptr;
  ASSERT_EQ(sqlite3_open(path().c_str(), &database), SQLITE_OK);
  EXPECT_EQ(sqlite3_exec(database, "UPDATE claims SET started = started - 1", nullptr, nullptr, nullptr),
            SQLITE_OK);
  sqlite3_close(database);
  EXPECT_FALSE(store.busy("k"));
  EXPECT_EQ(store.claim("k", false), Store::Claim::taken);
}

// A claim of another host holds as long as its process gives a sign of life.
TEST_F(StoreTest, AClaimOfAnotherHostIsVoidAfterTwoMinutesOfSilence) {
  Store store(path());
  ASSERT_EQ(store.claim("k", false), Store::Claim::taken);
  sqlite3* database = nullptr;
  ASSERT_EQ(sqlite3_open(path().c_str(), &database), SQLITE_OK);
  const auto change = [&](const char* statement) {
    EXPECT_EQ(sqlite3_exec(database, statement, nullptr, nullptr, nullptr), SQLITE_OK);
  };
  change("UPDATE claims SET host = 'elsewhere', pid = 0, beat = unixepoch() - 110");
  EXPECT_TRUE(store.busy("k"));
  change("UPDATE claims SET beat = unixepoch() - 121");
  EXPECT_FALSE(store.busy("k"));
  sqlite3_close(database);
}

TEST_F(StoreTest, OfManyProcessesOneGetsAPoint) {
  { const Store made(path()); }
  constexpr int kProcesses = 4, kPoints = 12;
  std::array<pid_t, kProcesses> pids{};
  for (int i = 0; i < kProcesses; ++i) {
    pids[i] = fork();
    if (pids[i] != 0) continue;
    Store store(path());
    std::ofstream log(path("log" + std::to_string(i)));
    for (int k = 0; k < kPoints; ++k) {
      const std::string key = std::to_string(k);
      if (store.claim(key, false) != Store::Claim::taken) continue;
      log << key << std::endl;
      store.put(key, "", "", {});
    }
    _exit(0);
  }
  for (const pid_t pid : pids) waitpid(pid, nullptr, 0);
  std::multiset<std::string> taken;
  for (int i = 0; i < kProcesses; ++i) {
    std::ifstream log(path("log" + std::to_string(i)));
    for (std::string key; log >> key;) taken.insert(key);
  }
  EXPECT_EQ(taken.size(), kPoints);
  for (int k = 0; k < kPoints; ++k) EXPECT_EQ(taken.count(std::to_string(k)), 1u) << k;
}

TEST_F(StoreTest, RefusesWhatIsNoStore) {
  std::ofstream(path())
      << "some text that is longer than the header of a database has to be, so that it is one\n"
      << std::string(200, 'x');
  try {
    const Store store(path());
    FAIL();
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr("store.sqlite: is not a store of results"));
  }
  EXPECT_THROW(Store("/proc/store.sqlite"), OutputError);
}

// A row that a disk or a hand has changed is none: its point runs again, and the row is renewed.
TEST_F(StoreTest, DamagedRowsRunAgain) {
  const std::string document = R"({"rows": [{"latency_us": 5}]})";
  const auto change = [&](const std::string& statement) {
    sqlite3* handle = nullptr;
    ASSERT_EQ(sqlite3_open(path().c_str(), &handle), SQLITE_OK);
    EXPECT_EQ(sqlite3_exec(handle, statement.c_str(), nullptr, nullptr, nullptr), SQLITE_OK) << statement;
    sqlite3_close(handle);
  };
  for (const char* set :
       {"document = '{}'", "document = substr(document, 1, 10)", "document = ''", "reason = 'x'",
        "document = replace(document, '5', '6')", "profile = 'y'", "exit_code = 1"}) {
    {
      Store store(path());
      EXPECT_NE(store.claim("k", true), Store::Claim::busy);
      store.put("k", "dispatch", "", {0, "", document, "", 1, 1});
      ASSERT_TRUE(store.find("k"));
    }
    change(fmt::format("UPDATE results SET {}", set));
    Store store(path());
    EXPECT_FALSE(store.find("k")) << set;
    EXPECT_EQ(store.claim("k", false), Store::Claim::taken) << set;
    store.release("k");
  }
}

// Of before checksums: what is a result is taken.
TEST_F(StoreTest, OfVersionOneIsReadAndCarriedOver) {
  const auto in_old = [&](const std::string& statement) {
    sqlite3* handle = nullptr;
    ASSERT_EQ(sqlite3_open(path().c_str(), &handle), SQLITE_OK);
    char* why = nullptr;
    EXPECT_EQ(sqlite3_exec(handle, statement.c_str(), nullptr, nullptr, &why), SQLITE_OK) << why;
    sqlite3_close(handle);
  };
  { Store store(path()); }
  in_old(
      "ALTER TABLE results DROP COLUMN checksum; PRAGMA user_version = 1; INSERT INTO results VALUES('good', "
      "'s', '', "
      "0, '', '{\"rows\": []}', '', 1, 1, ''), ('cut', 's', '', 0, '', '{\"rows\": [', '', 1, 1, ''), "
      "('empty', 's', "
      "'', 0, '', '{}', '', 1, 1, ''), ('hung', 's', '', 3, 'hung', '', '', 1, 1, '')");
  Store store(path());
  EXPECT_TRUE(store.find("good"));
  EXPECT_TRUE(store.find("hung"));
  EXPECT_FALSE(store.find("cut"));
  EXPECT_FALSE(store.find("empty"));
  store.put("good", "s", "", {0, "", R"({"rows": [1]})", "", 1, 1});
  EXPECT_TRUE(Store(path()).find("good"));
}

}  // namespace
}  // namespace cm384::runs::store_test
