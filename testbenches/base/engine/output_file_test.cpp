// Files that appear whole or not at all.
#include "base/text/output_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/text/error.h"

namespace cm384::output_file_test {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

std::string content_of(const fs::path& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

std::ptrdiff_t files_in(const fs::path& folder) {
  return std::distance(fs::directory_iterator(folder), fs::directory_iterator());
}

template <class Function>
std::string failure_of(Function&& function) {
  try {
    function();
  } catch (const OutputError& error) {
    return error.what();
  }
  return "no failure";
}

class OutputFiles : public ::testing::Test {
 protected:
  OutputFiles() { fs::create_directories(folder_); }
  ~OutputFiles() override { fs::remove_all(folder_); }
  std::string in(const std::string& name) const { return (folder_ / name).string(); }

  fs::path folder_ = fs::path(::testing::TempDir()) / ("cm384_output_file_" + std::to_string(getpid()));
};

TEST_F(OutputFiles, AppearWhenFinishedAndNotBefore) {
  OutputFile file(in("deep/er/name"));
  file.write("one ");
  EXPECT_EQ(files_in(folder_ / "deep/er"), 0);
  file.write("two");
  EXPECT_EQ(file.written(), 7u);
  file.finish();
  EXPECT_EQ(content_of(in("deep/er/name")), "one two");
  EXPECT_EQ(files_in(folder_ / "deep/er"), 1);
}

TEST_F(OutputFiles, LeaveNothingWhereTheyAreNotFinished) {
  write_file(in("name"), "before");
  {
    OutputFile file(in("name"));
    file.write(std::string(1 << 20, 'x'));
  }
  EXPECT_EQ(content_of(in("name")), "before");
  EXPECT_EQ(files_in(folder_), 1);
}

TEST_F(OutputFiles, OfOneNameAreBothWholeAndTheLastWins) {
  OutputFile first(in("name")), second(in("name"));
  first.write("first");
  second.write("second, longer");
  second.finish();
  EXPECT_EQ(content_of(in("name")), "second, longer");
  first.finish();
  EXPECT_EQ(content_of(in("name")), "first");
  EXPECT_EQ(files_in(folder_), 1);
}

TEST_F(OutputFiles, AreReadableAsTheUmaskSays) {
  const mode_t mask = umask(027);
  write_file(in("plain"), "x");
  { NamedOutput(in("named")).commit(); }
  umask(mask);
  for (const char* name : {"plain", "named"}) {
    struct stat status {};
    ASSERT_EQ(stat(in(name).c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777, 0640u) << name;
  }
}

TEST_F(OutputFiles, TellTheSystemsReason) {
  OutputFile full("/dev/full");
  full.write("x");
  EXPECT_THAT(failure_of([&] { full.finish(); }), HasSubstr("/dev/full: cannot be written: No space left"));
  OutputFile packed("/dev/full", OutputFile::Compression::by_name);
  packed.write(std::string(1 << 20, 'x'));
  EXPECT_THAT(failure_of([&] { packed.finish(); }), HasSubstr("No space left"));
  write_file(in("file"), "x");
  EXPECT_THAT(failure_of([&] { OutputFile(in("file/name")); }), HasSubstr("Not a directory"));
  EXPECT_THAT(failure_of([&] { OutputFile{folder_.string()}; }), HasSubstr("Is a directory"));
  EXPECT_THAT(failure_of([&] { OutputFile{""}; }), HasSubstr("empty name"));
}

TEST_F(OutputFiles, CompressedTellTheReasonToo) {
  fs::create_symlink("/dev/full", in("full.gz"));
  OutputFile file(in("full.gz"), OutputFile::Compression::by_name);
  std::string noise;
  for (unsigned k = 0; k < 1 << 20; ++k) noise += static_cast<char>(k * 2654435761u >> 13);
  file.write(noise);
  EXPECT_THAT(failure_of([&] { file.finish(); }), HasSubstr("full.gz: cannot be written: No space left"));
  // So little that zlib writes it when the file is closed.
  OutputFile small(in("full.gz"), OutputFile::Compression::by_name);
  small.write("x");
  EXPECT_THAT(failure_of([&] { small.finish(); }), HasSubstr("full.gz: cannot be written: No space left"));
}

TEST_F(OutputFiles, GoIntoDevicesAndLeaveThemThere) {
  write_file("/dev/null", "x");
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
}

TEST_F(OutputFiles, ReplaceWhatALinkPointsTo) {
  write_file(in("target"), "old");
  fs::create_symlink("target", in("link"));
  write_file(in("link"), "new");
  EXPECT_TRUE(fs::is_symlink(in("link")));
  EXPECT_EQ(content_of(in("target")), "new");
}

TEST_F(OutputFiles, AreCompressedByNameAlone) {
  for (const char* name : {"text.gz", "text"}) {
    OutputFile file(in(name), OutputFile::Compression::by_name);
    for (int k = 0; k < 100'000; ++k) file.write("line\n");
    file.finish();
  }
  EXPECT_EQ(fs::file_size(in("text")), 500'000u);
  EXPECT_LT(fs::file_size(in("text.gz")), 10'000u);
  const gzFile file = gzopen(in("text.gz").c_str(), "rb");
  std::string text(600'000, '\0');
  text.resize(static_cast<std::size_t>(gzread(file, text.data(), static_cast<unsigned>(text.size()))));
  gzclose(file);
  EXPECT_EQ(text, content_of(in("text")));
}

TEST_F(OutputFiles, NamedOnesGoWhereTheyAreNotCommitted) {
  {
    const NamedOutput dropped(in("name"));
    std::ofstream(dropped.name()) << "half";
    EXPECT_TRUE(fs::exists(dropped.name()));
  }
  EXPECT_EQ(files_in(folder_), 0);
  NamedOutput kept(in("name"));
  std::ofstream(kept.name()) << "whole";
  kept.commit();
  EXPECT_EQ(content_of(in("name")), "whole");
  EXPECT_EQ(files_in(folder_), 1);
}

}  // namespace
}  // namespace cm384::output_file_test
