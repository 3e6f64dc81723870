// Signals of the model in a file for GTKWave (wave_file.h): of chosen links whether
// they are busy and how many credits each lane has left, and of dies how many requests are under way.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <queue>
#include <set>
#include <string>
#include <vector>

#include "system/machine/supernode.h"
#include "system/observe/wave_file.h"

namespace cm384::observe {

class Wave {
 public:
  // Attaches to a machine before its first launch. No selection: the ports of the first die that takes part.
  Wave(supernode::Supernode& machine, const std::string& path,
       std::vector<supernode::LinkSelection> selected);
  ~Wave();

  bool shows(const supernode::LinkName& link) const;
  void finish();

 private:
  struct Signal {
    unsigned bits = 1;
    std::uint64_t value = ~std::uint64_t{0};
  };
  struct Link {
    std::size_t busy = 0, first_lane = 0;
    Time tail;  // of the last packet
  };
  struct Change {
    Time at;
    std::uint64_t order = 0;
    std::size_t signal = 0;
    std::uint64_t value = 0;
    bool operator>(const Change& other) const { return at != other.at ? at > other.at : order > other.order; }
  };

  std::size_t declare(const std::string& name, unsigned bits);
  void declare_link(const supernode::LinkName& link);
  void packet(const supernode::LinkPacket& packet);
  void change(std::size_t signal, Time at, std::uint64_t value);
  void write_until(Time end);

  supernode::Supernode& machine_;
  std::vector<supernode::LinkSelection> selected_;
  std::unique_ptr<WaveFile> file_;
  std::vector<Signal> signals_;
  std::map<std::string, Link> links_;     // by name
  std::map<int, std::size_t> under_way_;  // by die
  std::priority_queue<Change, std::vector<Change>, std::greater<>> changes_;
  std::uint64_t order_ = 0;
  Time latest_, written_{-1};
};

}  // namespace cm384::observe
