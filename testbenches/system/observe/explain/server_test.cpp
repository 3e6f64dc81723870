// Calendars, servers, credits and walks against what a queue on paper says.
#include "system/observe/explain/server.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "system/observe/explain/credits.h"
#include "system/observe/explain/walks.h"

namespace cm384::observe::server_test {
namespace {

double gain(const Path& path, Resource resource) {
  return path.gain[static_cast<std::size_t>(resource)];
}
double spent(const Path& path, Part part) {
  return static_cast<double>(path.spent[static_cast<std::size_t>(part)]);
}
Path after(double ps, Part part, Resource resource) {
  Path path;
  path.add(ps, part, resource);
  return path;
}

TEST(Calendar, ServesInOrder) {
  Calendar calendar;
  EXPECT_EQ(calendar.reserve(100, 10), 100);
  EXPECT_EQ(calendar.reserve(105, 10), 110);
  EXPECT_EQ(calendar.reserve(120, 10), 120);
  EXPECT_EQ(calendar.reserve(120, 10), 130);
}

TEST(Calendar, WhoComesEarlierTakesTheIdleTimesFromThenOn) {
  Calendar calendar;
  calendar.reserve(0, 10);
  calendar.reserve(19, 10);                // idle from 10 to 19
  calendar.reserve(40, 10);                // and from 29 to 40
  EXPECT_EQ(calendar.reserve(5, 12), 10);  // all of the first, 3 of the second
  EXPECT_EQ(calendar.reserve(5, 1), 32);
  EXPECT_EQ(calendar.reserve(39, 4), 39);  // one moment of the second, three behind the last
  EXPECT_EQ(calendar.reserve(39, 1), 53);
}

TEST(Calendar, KeepsWhatIsLeftOnBothSides) {
  Calendar calendar;
  calendar.reserve(100, 10);
  EXPECT_EQ(calendar.reserve(50, 10), 50);
  EXPECT_EQ(calendar.reserve(0, 50), 0);
  EXPECT_EQ(calendar.reserve(0, 40), 60);
  EXPECT_EQ(calendar.reserve(0, 1), 110);
}

// In order: begins that are not before they may, of services that do not overlap.
TEST(Calendar, NeverServesTwoAtOnce) {
  std::mt19937 random(1);
  Calendar calendar;
  std::vector<std::pair<double, double>> served;
  for (int n = 0; n < 2000; ++n) {
    const double at = n * 30.0 + static_cast<double>(random() % 10);
    const double service = 1 + static_cast<double>(random() % 25);
    const double begin = calendar.reserve(at, service);
    EXPECT_GE(begin, at);
    served.emplace_back(begin, begin + service);
  }
  std::ranges::sort(served);
  for (std::size_t n = 1; n < served.size(); ++n) EXPECT_GE(served[n].first, served[n - 1].second);
}

// Many that come late, in the middle of idle times, more than are known exactly: what is left before and
// after them is given to others. A server that is busy for a third of the time hardly lets anybody wait.
TEST(Calendar, LosesNoTime) {
  std::mt19937 random(1);
  Calendar calendar;
  double waited = 0;
  const int kMany = 20'000;
  for (int n = 0; n < kMany; ++n) {
    const double at = n * 12'000.0 - static_cast<double>(random() % 6'000'000);  // up to 500 services back
    if (at < 0) continue;
    waited += calendar.reserve(at, 4'000) - at;
  }
  EXPECT_LT(waited / kMany, 4'000);
}

// Of a server that is always busy nobody gets a moment twice.
TEST(Calendar, IsFullWhereItIsSaturated) {
  std::mt19937 random(1);
  Calendar calendar;
  double last = 0;
  const int kMany = 20'000;
  for (int n = 0; n < kMany; ++n)
    last = std::max(last, calendar.reserve(n * 2'000.0 + static_cast<double>(random() % 3'000'000), 4'000));
  EXPECT_GE(last, 4'000.0 * (kMany - 1));
  EXPECT_LE(last, 4'000.0 * kMany + 3'000'000);
}

// Far back, beyond what is known exactly: no microsecond is given more than it has.
TEST(Calendar, GivesNoMoreThanThereIs) {
  Calendar calendar;
  for (int n = 0; n < 400; ++n) calendar.reserve(n * 50'000.0, 20'000);  // 60 % idle for 20 us
  double last = 0;
  const int kMany = 600;  // of 20,000: all that is idle, whole
  for (int n = 0; n < kMany; ++n) last = std::max(last, calendar.reserve(1'000'000, 20'000));
  EXPECT_GE(last + 20'000, 1'000'000 + 20'000 * kMany);
  EXPECT_LE(last, 25'000'000);
}

// 1000 that come at once and take 10 each: with the server twice as fast they end in half the time, with
// anything else not earlier.
TEST(Server, BindsWhereItIsSaturated) {
  Server server;
  Path last;
  const Served served{Part::trunk, Resource::trunk, Resource::link};
  for (int n = 0; n < 1000; ++n) {
    last = after(1, Part::wire, Resource::wire);
    server.serve(last, 1 + 10.0 * n, 10, served, Part::fabric_wait);
  }
  EXPECT_EQ(last.at, 9991);
  EXPECT_NEAR(gain(last, Resource::trunk), 4995, 1e-6);
  EXPECT_NEAR(gain(last, Resource::link), 4995, 1e-6);
  EXPECT_NEAR(gain(last, Resource::die_link), 0, 1e-6);
  EXPECT_NEAR(gain(last, Resource::wire), 0.5, 1e-6);
  EXPECT_NEAR(gain(last, Resource::none), 0, 1e-6);
  EXPECT_EQ(spent(last, Part::trunk), 9990);
  EXPECT_EQ(spent(last, Part::fabric_wait), 0);
  EXPECT_EQ(server.busy(), 10'000);
  server.forget_busy();
  EXPECT_EQ(server.busy(), 0);
}

// Two that come in another order where the wire is faster do not wait for each other there.
TEST(Server, ServesInEachEvaluationAsTheyComeThere) {
  Server server;
  const Served served{Part::die_link, Resource::die_link, Resource::link};
  Path first = after(10'000, Part::other, Resource::none), second = after(10'500, Part::wire, Resource::wire);
  server.serve(first, 10'000, 1000, served, Part::fabric_wait);
  server.serve(second, 11'000, 1000, served, Part::fabric_wait);
  EXPECT_EQ(second.time(Resource::wire), 5250);
  EXPECT_EQ(second.time(Resource::none), 11'000);
  EXPECT_EQ(second.time(Resource::die_link), 10'500);
}

// What is waited for and not known is missing from all evaluations alike.
TEST(Server, LeavesOutWaitsForWhatIsNotKnown) {
  Server server;
  Path path = after(100, Part::wire, Resource::wire);
  server.serve(path, 180, 10, {Part::trunk, Resource::trunk, Resource::link}, Part::fabric_wait);
  EXPECT_EQ(path.at, 180);
  EXPECT_EQ(gain(path, Resource::none), 80);
  EXPECT_EQ(gain(path, Resource::wire) - gain(path, Resource::none), 50);
  EXPECT_EQ(spent(path, Part::fabric_wait), 80);
}

TEST(Server, OthersWithoutAPathTakeItsTimeInAllEvaluations) {
  Server server;
  const Served served{Part::trunk, Resource::trunk, Resource::link};
  server.occupy(0, 1000, served);
  Path path;
  server.serve(path, 1000, 10, served, Part::fabric_wait);
  EXPECT_EQ(path.time(Resource::none), 1000);
  EXPECT_EQ(path.time(Resource::trunk), 500);
}

// A sender whose packets take 10 on the wire and come free at the other end `loop` after they began: a buffer
// of four lets four go a loop.
struct Loop {
  Server wire;
  Credits credits;
  Path send(int buffer, double loop) {
    Path path;
    credits.acquire(path, 4, buffer);
    const double start = std::max(path.at, wire.free_at());
    wire.serve(path, start, 10, {Part::die_link, Resource::die_link, Resource::link}, Part::fabric_wait);
    Path back = path;
    back.add(loop, Part::credit, Resource::wire);
    credits.release(back, 4, start);
    return path;
  }
};

TEST(Credits, ABufferLetsOutWhatItHoldsInALoop) {
  Loop loop;
  Path last;
  for (int n = 0; n < 400; ++n) last = loop.send(16, 320);
  EXPECT_EQ(last.at, 99 * 320 + 30);
  EXPECT_NEAR(last.time(Resource::buffers), 49 * 320 + 70, 1e-6);   // eight a loop
  EXPECT_NEAR(last.time(Resource::wire), 99 * 160 + 30, 1e-6);      // half the loop
  EXPECT_NEAR(last.time(Resource::die_link), 99 * 320 + 15, 1e-6);  // nothing
  EXPECT_NEAR(spent(last, Part::credit), 99 * 320, 1e-6);
  EXPECT_NEAR(loop.credits.held(), 400 * 4 * 320, 1e-6);
}

TEST(Credits, TwiceABufferEndsWhereTheWireBinds) {
  Loop loop;
  Path last;
  for (int n = 0; n < 400; ++n) last = loop.send(16, 60);  // six fill the wire
  EXPECT_EQ(last.at, 99 * 60 + 30);
  EXPECT_NEAR(last.time(Resource::buffers), 399 * 10, 1e-6);
}

TEST(Credits, ABufferThatIsNeverFullHoldsNobody) {
  Loop loop;
  Path last;
  for (int n = 0; n < 400; ++n) last = loop.send(64, 150);  // sixteen packets, fifteen under way
  EXPECT_EQ(last.at, 3990);
  EXPECT_EQ(gain(last, Resource::buffers), 0);
  Loop short_of_one;
  for (int n = 0; n < 400; ++n) last = short_of_one.send(60, 160);  // fifteen packets, sixteen under way
  EXPECT_GT(last.at, 3990);
}

constexpr std::uint64_t kPage = 1 << 21;
hw::UbTranslation two_walks() {
  hw::UbTranslation p;
  p.page = Bytes{kPage};
  p.entries = 16;
  p.ways = 8;
  p.walks = 2;
  p.miss_latency = Time{500'000};
  return p;
}

TEST(Walks, AllOfAPageWaitForItsWalk) {
  Walks walks(two_walks());
  Path first = after(100'000, Part::wire, Resource::wire),
       second = after(300'000, Part::wire, Resource::wire),
       late = after(900'000, Part::other, Resource::none);
  walks.translate(first, 0);
  EXPECT_EQ(first.at, 600'000);
  EXPECT_EQ(spent(first, Part::translation), 500'000);
  EXPECT_EQ(first.time(Resource::translation), 350'000);
  EXPECT_EQ(first.time(Resource::wire), 550'000);
  EXPECT_EQ(gain(first, Resource::none), 0);
  walks.translate(second, kPage - 1);
  EXPECT_EQ(second.at, 600'000);
  EXPECT_EQ(second.time(Resource::translation), 350'000);
  EXPECT_EQ(second.time(Resource::wire), 550'000);
  walks.translate(late, 0);
  EXPECT_EQ(late.at, 900'000);
  EXPECT_EQ(late.time(Resource::translation), 900'000);
  EXPECT_EQ(walks.busy(), 250'000);  // of two
  walks.forget_busy();
  EXPECT_EQ(walks.busy(), 0);
}

TEST(Walks, AsManyAsThereAreRunAtATime) {
  Walks walks(two_walks());
  Path last;
  for (std::uint64_t page = 0; page < 5; ++page) {
    last = Path();
    walks.translate(last, page * kPage);
  }
  EXPECT_EQ(last.at, 1'500'000);
  EXPECT_EQ(last.time(Resource::translation), 750'000);
  EXPECT_EQ(spent(last, Part::translation), 1'500'000);
}

TEST(Walks, WhatOthersHaveTranslatedIsKnown) {
  Walks walks(two_walks());
  walks.know(kPage);
  Path path;
  walks.translate(path, kPage);
  EXPECT_EQ(path.at, 0);
}

}  // namespace
}  // namespace cm384::observe::server_test
