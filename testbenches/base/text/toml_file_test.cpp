// Described structs from files: what is taken, and what is refused with file, line and key.
#include "base/text/toml_file.h"

#include <gmock/gmock.h>

#include "testbenches/hw/refusal.h"

namespace cm384::hw::toml_file_test {
namespace {

using ::testing::ElementsAre;

struct Wheel {
  std::string name;
  int spokes = 36;
  TomlPlace place;

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    visit("name", self.name, "of the wheel", Required{});
    visit("spokes", self.spokes, Range{0, 48, 4}, "of it");
  }
};

struct Lamp {
  Time flash{};
  bool on = false;
  TomlPlace place;

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    visit("flash", self.flash, Range{1_ps, 1_s}, "of light", Required{});
    visit("on", self.on, "it shines");
  }
};

struct Bicycle {
  std::string colour = "red";
  double price = 0;
  Texts bells;
  Integers gears;
  std::vector<Wheel> wheels;
  Lamp lamp;
  TomlNode load;
  TomlPlace place;

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    visit("colour", self.colour, OneOf{{"red", "green"}}, "of the frame");
    visit("price", self.price, Range{0.0, kNoLimit}, "of all");
    visit("bells", self.bells, "by name");
    visit("gears", self.gears, Range{1, 11}, "teeth");
    visit("wheel", self.wheels);
    visit("lamp", self.lamp);
    visit("load", self.load, "anything");
  }
};

std::string message(const char* text) {
  return refusal([&] {
    Bicycle bicycle;
    TomlFile(text, "b.toml").read(bicycle);
  });
}

TEST(TomlFile, ReadsWhatIsDescribed) {
  const TomlFile file(R"(
colour = "green"
price = 12
bells = ["ding, dong", "ring"]
gears = [3, 11]
load = { apples = [1, 2] }
[[wheel]]
name = "front"
[[wheel]]
name = "back"
spokes = 40
[lamp]
flash = "20ns"
)",
                      "b.toml");
  Bicycle bicycle;
  file.read(bicycle);
  EXPECT_EQ(bicycle.colour, "green");
  EXPECT_EQ(bicycle.price, 12);
  EXPECT_THAT(bicycle.bells, ElementsAre("ding, dong", "ring"));
  EXPECT_THAT(bicycle.gears, ElementsAre(3, 11));
  ASSERT_EQ(bicycle.wheels.size(), 2u);
  EXPECT_EQ(bicycle.wheels[0].spokes, 36);
  EXPECT_FALSE(bicycle.wheels[0].place.has("spokes"));
  EXPECT_EQ(bicycle.wheels[1].spokes, 40);
  EXPECT_EQ(bicycle.lamp.flash, 20_ns);
  EXPECT_TRUE(bicycle.lamp.place.has("flash"));
  ASSERT_TRUE(bicycle.load);
  EXPECT_EQ(file.text_of(*(*bicycle.load).as_table()->get("apples"), "load"), "1,2");
  EXPECT_EQ(refusal([&] { bicycle.wheels[1].place.refuse("spokes", "are bent"); }),
            "b.toml:11: spokes: are bent");
  EXPECT_EQ(refusal([&] { bicycle.wheels[0].place.refuse("spokes", "are bent"); }),
            "b.toml:7: spokes: are bent");
  EXPECT_EQ(refusal([&] { bicycle.lamp.place.guarded("flash", [] { throw InputError("is dim"); }); }),
            "b.toml:13: flash: is dim");
}

TEST(TomlFile, WhatIsNotGivenKeepsItsDefault) {
  Bicycle bicycle;
  const TomlFile file("", "b.toml");
  file.read(bicycle);
  EXPECT_EQ(bicycle.colour, "red");
  EXPECT_EQ(bicycle.lamp.place.table, nullptr);  // and its flash is not asked for
  EXPECT_FALSE(bicycle.load);
}

TEST(TomlFile, UnknownKeysComeFirstAndAreSuggested) {
  EXPECT_EQ(message("colour = 3\npirce = 1"),
            "b.toml:2: pirce: no such key; did you mean price?; allowed: colour, price, bells, gears, wheel, "
            "load, lamp");
  EXPECT_EQ(message("[lamp]\nflahs = '1ns'"),
            "b.toml:2: lamp.flahs: no such key; did you mean lamp.flash?; allowed: lamp.flash, lamp.on");
  EXPECT_EQ(message("[[wheel]]\nnmae = 'a'"),
            "b.toml:2: nmae: no such key; did you mean name?; allowed: name, spokes");
}

TEST(TomlFile, WrongValuesSayWhatIsAllowed) {
  EXPECT_EQ(message("[lamp]\non = true"),
            "b.toml:1: lamp.flash: is missing; allowed: a time with unit from 1ps to 1s");
  EXPECT_EQ(message("[lamp]\nflash = 3"),
            "b.toml:2: lamp.flash: '3' has no unit; allowed: a time with unit from 1ps to 1s");
  EXPECT_EQ(message("lamp = 3"), "b.toml:1: lamp: is a section; allowed: [lamp] and keys in it");
  EXPECT_EQ(message("[[wheel]]\nname = ''"), "b.toml:2: name: is empty; allowed: a string");
  EXPECT_EQ(message("[[wheel]]\nname = 'a'\nspokes = 49"),
            "b.toml:3: spokes: 49 is out of range; allowed: a whole number from 0 to 48, multiples of 4");
  EXPECT_EQ(message("wheel = 1"), "b.toml:1: wheel: is not a list; allowed: [[wheel]]");
  EXPECT_EQ(message("bells = 'a'"), "b.toml:1: bells: is not a list; allowed: a list, each entry a string");
  EXPECT_EQ(message("bells = ['a', 1]"), "b.toml:1: bells: is not a string; allowed: a string");
  EXPECT_EQ(message("bells = ['']"), "b.toml:1: bells: has an empty entry; allowed: a string");
  EXPECT_EQ(message("gears = [0]"),
            "b.toml:1: gears: 0 is out of range; allowed: a whole number from 1 to 11");
  EXPECT_EQ(message("gears = ['1..8']"),
            "b.toml:1: gears: \"1..8\" is a string; allowed: a whole number from 1 to 11");
  EXPECT_EQ(message("price = -1"), "b.toml:1: price: -1 is out of range; allowed: a number, 0 or more");
  EXPECT_EQ(message("colour = 'gren'"),
            "b.toml:1: colour: 'gren' is unknown, did you mean 'green'?; allowed: one of red, green");
}

}  // namespace
}  // namespace cm384::hw::toml_file_test
