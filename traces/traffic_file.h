// The binary format of traffic traces, version 4. Everything is little-endian.
//
//     file    "CM384TRC" | u32 version | u32 bytes of header | header, JSON | u32 CRC of it | block ... |
//     index block   "BLK1" | u32 records | u32 raw bytes | u32 compressed bytes | u32 CRC of the next | zstd
//     frame index   "IDX1" | u32 blocks | u32 CRC of the next | (u64 offset, u64 first record, i64 first
//     start) ...
//             | u64 offset of the index | "CM384END"
//
// A block stands by itself; its records are variable-length integers with times as differences. Version 1
// knew neither cube cores nor the SDMA engine, version 2 neither streams nor the host, version 3 no queues of
// compute; they are read alike. CRC is CRC-32 (IEEE 802.3). A file that lacks its index was cut off: what
// stands before is good.
#pragma once

#include <fstream>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/text/output_file.h"
#include "traces/traffic.h"

namespace cm384::traces {

// A block in the index.
struct BlockEntry {
  std::uint64_t offset = 0, first = 0;  // in the file; number of its first record
  std::int64_t start_ps = 0;            // of that record
};

class TrafficFileWriter final : public TrafficSink {
 public:
  TrafficFileWriter(const std::string& path, const TrafficHeader& header);
  void add(const TrafficRecord& record) override;
  void finish() override;

 private:
  void end_block();

  OutputFile file_;
  std::string raw_;
  std::uint32_t in_block_ = 0;
  std::uint64_t records_ = 0;
  Time last_;
  std::vector<BlockEntry> index_;
};

class TrafficFileReader final : public TrafficSource {
 public:
  explicit TrafficFileReader(const std::string& path);
  const TrafficHeader& header() const override { return header_; }
  bool next(TrafficRecord& record) override;
  // Goes on at the last block that starts before `start`; returns the number of its first record. Throws
  // InputError for a file without an index.
  std::uint64_t seek(Time start);
  // Continues at the block that holds a record; returns the number of its first record.
  std::uint64_t seek_record(std::uint64_t record);
  std::uint64_t number() const { return number_; }  // of the next record

 private:
  std::uint64_t seek_last(const std::function<bool(const BlockEntry&)>& wanted);
  [[noreturn]] void fail(std::uint64_t offset, const std::string& what) const;
  std::string read(std::size_t bytes, const char* what);
  void read_header();
  bool read_block();
  void check_index();
  void decode(TrafficRecord& record);

  std::string path_;
  std::ifstream stream_;
  TrafficHeader header_;
  std::string raw_;           // of the present block
  std::uint64_t offset_ = 0;  // in the file, of what is read next
  std::uint64_t block_ = 0;   // offset of the present block
  std::size_t at_ = 0;        // in raw_
  std::uint32_t left_ = 0;    // records of the block
  std::uint64_t number_ = 0;
  Time last_;
  bool ended_ = false;
};

}  // namespace cm384::traces
