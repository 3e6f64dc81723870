// What ranks of a group tell each other for the tasks of Hccl<>, and the copies that bring their pieces:
// words and posts in the boxes of firmware/abi/communication.h, written by SDMA copies of block 0.
#pragma once

#include "cm384/kernel.h"
#include "cm384/sdma.h"

namespace AscendC {

class Cm384GroupServer {
 public:
  inline void Open(const uint8_t* group) {
    const auto* head = reinterpret_cast<const cm384_group_head*>(group);
    server_ = *reinterpret_cast<cm384_group_server* const*>(group + CM384_GROUP_SERVER);
    rank_ = head->rank;
    ranks_ = head->ranks;
    queue_ = SdmaQueue(server_->queue, 0);
    drained_ = queue_.tail();
  }
  CM384_INLINE uint32_t rank() const { return rank_; }
  CM384_INLINE uint32_t ranks() const { return ranks_; }
  CM384_INLINE uint32_t Peer(uint32_t turn) const { return (rank_ + turn) % ranks_; }
  // Tasks of launches before this one.
  CM384_INLINE uint64_t ended() const { return server_->ended; }
  inline void Close(uint64_t ended) {
    auto* queue = reinterpret_cast<cm384_queue*>(server_->queue);
    Drain();
    queue->tail = queue_.tail();
    dcci(reinterpret_cast<uint64_t>(queue), sizeof *queue);
    server_->ended = ended;
    dcci(reinterpret_cast<uint64_t>(server_), sizeof *server_);
  }

  // Tells a rank where its piece of a task stands, and where this rank puts its result.
  inline void Tell(uint32_t to, uint64_t number, uint64_t from, uint64_t result) {
    auto* post = reinterpret_cast<cm384_group_post*>(Own(number, to));
    post->task = number + 1;
    post->from = from;
    post->to = result;
    dcci(reinterpret_cast<uint64_t>(post), sizeof *post);
    Copy(Post(to, number, rank_), reinterpret_cast<uint64_t>(post), sizeof *post);
  }
  // Whether all ranks have told of the task; what one has; returns once one more may have.
  inline bool AllTold(uint64_t number) const {
    dcci(Post(rank_, number, 0), ranks_ * sizeof(cm384_group_post));
    for (uint32_t from = 0; from < ranks_; ++from) {
      if (Told(number, from)->task != number + 1) return false;
    }
    return true;
  }
  CM384_INLINE const volatile cm384_group_post* Told(uint64_t number, uint32_t from) const {
    return reinterpret_cast<const volatile cm384_group_post*>(Post(rank_, number, from));
  }
  CM384_INLINE void AwaitTold(uint64_t number) const {
    PollMark(Post(rank_, number, 0), ranks_ * sizeof(cm384_group_post));
  }

  // A copy behind all before it.
  inline void Copy(uint64_t to, uint64_t from, uint64_t bytes) {
    constexpr uint64_t kLargest = uint64_t{1} << 30;
    for (uint64_t at = 0; at < bytes; at += kLargest) {
      if (queue_.tail() - drained_ >= kRoom) Drain();
      queue_.Copy(to + at, from + at, static_cast<uint32_t>(bytes - at < kLargest ? bytes - at : kLargest));
    }
  }
  CM384_INLINE void Ring() { queue_.Ring(); }
  // Tells all ranks that this one has done a phase of the task, once all copies before are complete.
  inline void Signal(uint64_t number, uint32_t phase) {
    const uint64_t word = OwnWord(number, phase);
    *reinterpret_cast<uint64_t*>(word) = number + 1;
    dcci(word, 8);
    for (uint32_t turn = 0; turn < ranks_; ++turn)
      Copy(Words(Peer(turn), number, phase) + rank_ * 8ull, word, 8);
    Ring();
  }
  inline bool AllDone(uint64_t number, uint32_t phase) const {
    const uint64_t words = Words(rank_, number, phase);
    dcci(words, ranks_ * 8ull);
    for (uint32_t n = 0; n < ranks_; ++n) {
      if (Word(words + n * 8ull) != number + 1) return false;
    }
    return true;
  }
  CM384_INLINE void AwaitDone(uint64_t number, uint32_t phase) const {
    PollMark(Words(rank_, number, phase), ranks_ * 8ull);
  }

  // For the other blocks of this rank: the task has ended.
  inline void Publish(uint64_t number) {
    const uint64_t word = OwnWord(number, kEnded);
    *reinterpret_cast<uint64_t*>(word) = number + 1;
    dcci(word, 8);
  }
  inline void AwaitPublished(uint64_t number) const { AwaitWord(OwnWord(number, kEnded), number + 1); }

 private:
  static constexpr uint32_t kRoom = 1900;  // of the queue's 2,048 entries
  static constexpr uint32_t kEnded = 2, kDrained = 3;

  CM384_INLINE static uint64_t Word(uint64_t at) { return *reinterpret_cast<const volatile uint64_t*>(at); }
  inline static void AwaitWord(uint64_t at, uint64_t value) {
    for (;;) {
      dcci(at, 8);
      if (Word(at) == value) return PollEnd(at);
      PollMark(at, 8);
    }
  }
  // All copies so far are complete: a word of their number has come, from one place to another of its kind.
  inline void Drain() {
    const uint64_t from = OwnWord(0, kDrained), to = OwnWord(1, kDrained);
    *reinterpret_cast<uint64_t*>(from) = queue_.tail() + 1ull;
    dcci(from, 8);
    const uint64_t number = queue_.tail() + 1ull;
    queue_.Copy(to, from, 8);
    queue_.Ring();
    AwaitWord(to, number);
    drained_ = queue_.tail();
  }

  CM384_INLINE uint64_t Boxes(uint32_t rank) const {
    return reinterpret_cast<const uint64_t*>(server_->boxes)[rank];
  }
  CM384_INLINE uint64_t PostOf(uint64_t number, uint32_t rank) const {
    return (number % CM384_GROUP_SLOTS * ranks_ + rank) * sizeof(cm384_group_post);
  }
  CM384_INLINE uint64_t Post(uint32_t rank, uint64_t number, uint32_t from) const {
    return Boxes(rank) + PostOf(number, from);
  }
  CM384_INLINE uint64_t Words(uint32_t rank, uint64_t number, uint32_t phase) const {
    return Boxes(rank) + CM384_GROUP_POSTS(ranks_) +
           (phase * CM384_GROUP_SLOTS + number % CM384_GROUP_SLOTS) * CM384_GROUP_LINE(ranks_);
  }
  CM384_INLINE uint64_t Own(uint64_t number, uint32_t to) const {
    return Boxes(rank_) + CM384_GROUP_POSTS(ranks_) + CM384_GROUP_WORDS(ranks_) + PostOf(number, to);
  }
  CM384_INLINE uint64_t OwnWord(uint64_t number, uint32_t kind) const {
    return Boxes(rank_) + 2 * CM384_GROUP_POSTS(ranks_) + CM384_GROUP_WORDS(ranks_) +
           (kind * CM384_GROUP_SLOTS + number % CM384_GROUP_SLOTS) * 64;
  }

  cm384_group_server* server_ = nullptr;
  uint32_t rank_ = 0, ranks_ = 0, drained_ = 0;
  SdmaQueue queue_;
};

}  // namespace AscendC
