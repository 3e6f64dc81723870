// All points of a library as one kind of thing, and the curves that go through them: what `cm384 library`
// shows and checks.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "workloads/service/library.h"

namespace cm384::service {

// Names with their values, as options have them.
using Coordinates = std::vector<std::pair<std::string, std::string>>;
std::string text_of(const Coordinates& at);  // "kv 4096, mtp 1"

struct LibraryPoint {
  std::string kind;  // decode, attention, prefill, or a study
  Coordinates at;
  std::vector<std::pair<std::string, double>> values;  // the one that curves are of first
  std::string command, model;
  double seconds = 0;  // of one core of the host; 0: not known
  std::string date{};  // when it was measured; empty: not known
  std::string from{};  // "scaled"; empty: measured
  double error = 0;    // of a scaled one: library.h

  std::string place() const { return text_of(at); }
  bool is_at_place_of(const LibraryPoint& other) const { return kind == other.kind && at == other.at; }
};

// The points in the order of the library's file.
std::vector<LibraryPoint> points_of(const Library& library);
// The first and the last day on which they were measured; empty where it is not known of all.
std::pair<std::string, std::string> dates_of(const std::vector<LibraryPoint>& points);

// The points that differ in one coordinate, at least two.
struct LibraryCurve {
  std::string kind, value;                        // of its points; the name of their first value
  Coordinates at;                                 // what they have in common
  std::string over;                               // the coordinate
  std::vector<std::pair<double, double>> points;  // by rising coordinate
  double leave_one_out() const;  // worst share by which it misses an inner point; 0 with fewer than three
};

std::vector<LibraryCurve> curves_of(const std::vector<LibraryPoint>& points);

}  // namespace cm384::service
