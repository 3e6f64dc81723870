// Probes: places where a model tells who listens what just happened. Off, a probe is one test of a pointer
// pair that the branch predictor learns at once.
//
//     sim::Probe<const PacketArrival&> arrival;                  // in the model
//     if (arrival) arrival({.port = port, .at = now});           // builds the argument only when on
//     plane.arrival.attach(&recorder, [](void* self, const PacketArrival& a) { ... });
#pragma once

#include <vector>

namespace cm384::sim {

template <class... Arguments>
class Probe {
 public:
  using Callback = void (*)(void* listener, Arguments... arguments);

  // Listeners are called in the order in which they were attached; `listener` outlives the probe's use.
  void attach(void* listener, Callback callback) { listeners_.push_back({listener, callback}); }
  void detach(const void* listener) {
    std::erase_if(listeners_, [listener](const Listener& l) { return l.self == listener; });
  }

  explicit operator bool() const { return !listeners_.empty(); }
  void operator()(Arguments... arguments) const {
    for (const Listener& listener : listeners_) listener.callback(listener.self, arguments...);
  }

 private:
  struct Listener {
    void* self;
    Callback callback;
  };
  std::vector<Listener> listeners_;
};

}  // namespace cm384::sim
