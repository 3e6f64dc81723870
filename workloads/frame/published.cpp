#include "workloads/frame/published.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <mutex>

#include "base/text/embedded_text.h"
#include "base/text/error.h"
#include "base/text/quantity.h"
#include "base/text/toml_file.h"
#include "workloads/frame/model_option.h"
#include "workloads/frame/result_json.h"

namespace cm384::studies {
namespace {

std::string_view embedded(std::string_view name) {
  return std::ranges::find(hw::embedded_published(), name, &hw::EmbeddedText::name)->text;
}

// The file quotes nothing: no field holds a comma.
std::vector<std::string> fields_of(std::string_view line) {
  std::vector<std::string> fields(1);
  for (const char c : line) {
    if (c == ',') {
      fields.emplace_back();
    } else {
      fields.back() += c;
    }
  }
  return fields;
}

// Options, or fields of a row, with their values.
Conditions::Settings settings_of(const hw::TomlPlace& place, const hw::TomlNode& given,
                                 std::string_view key) {
  Conditions::Settings settings;
  if (!given) return settings;
  if (!given.node->is_table()) place.refuse(key, "allowed: { option = value, .. }");
  for (const auto& [name, node] : *given.node->as_table())
    settings.emplace_back(name.str(), place.file->text_of(node, name.str()));
  return settings;
}

Row fields_of_row(const hw::TomlPlace& place, const hw::TomlNode& given, const char* key) {
  Row row;
  for (const auto& [name, text] : settings_of(place, given, key)) {
    const toml::node& value = *(*given).as_table()->get(name);
    row.set(name, value.is_integer() ? Value(value.as_integer()->get()) : Value(text));
  }
  return row;
}

// One of the `figures` of a [[measured]].
struct FigureTable {
  std::string id, field;
  double scale = 1;
  hw::TomlNode row, chosen;
  hw::TomlPlace place;

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    visit("id", self.id, "in published.csv", hw::Required{});
    visit("field", self.field, "of the row; default: that of all");
    visit("scale", self.scale, Range{0.0, hw::kNoLimit}, "the figure's unit per the field's");
    visit("row", self.row, "fields of the row that is meant, with names of options");
    visit("chosen", self.chosen, "further fields of it, of several rows of a run");
  }
};

struct MeasuredTable {
  std::string study, machine, takes, field;
  double scale = 1;
  hw::TomlNode options, at_least;
  Texts any;
  std::vector<FigureTable> figures;
  hw::TomlPlace place;

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    visit("study", self.study, "that measures the figures", hw::Required{});
    visit("machine", self.machine, "preset that they are of; default: that of the file");
    visit("takes", self.takes, "so long that it is left out unless asked for");
    visit("field", self.field, "of the row that predicts them");
    visit("scale", self.scale, Range{0.0, hw::kNoLimit}, "the figure's unit per the field's");
    visit("options", self.options, "of the study");
    visit("at_least", self.at_least, "options that may be more");
    visit("any", self.any, "options that may be anything");
    visit("figures", self.figures, hw::Required{});
  }
};

struct MissingTable {
  std::string reason;
  Texts ids;
  hw::TomlPlace place;

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    visit("reason", self.reason, "why no run is compared", hw::Required{});
    visit("ids", self.ids, "in published.csv", hw::Required{});
  }
};

struct ConditionsTable {
  std::string machine;
  std::vector<MeasuredTable> measured;
  std::vector<MissingTable> missing;

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    visit("machine", self.machine, "that those are of that name no other one", hw::Required{});
    visit("measured", self.measured);
    visit("missing", self.missing);
  }
};

// What conditions.toml says, by id.
struct Known {
  std::map<std::string, Conditions, std::less<>> measured;
  std::map<std::string, std::string, std::less<>> missing;

  Known() {
    const hw::TomlFile file(embedded("conditions"), "hw/published/conditions.toml");
    ConditionsTable table;
    file.read(table);
    for (const MeasuredTable& each : table.measured) add_measured(table.machine, each);
    for (const MissingTable& each : table.missing) {
      for (const std::string& id : each.ids) {
        if (!missing.emplace(id, each.reason).second || measured.contains(id))
          each.place.refuse("ids", fmt::format("{} is listed twice", id));
      }
    }
  }

  void add_measured(const std::string& machine, const MeasuredTable& table) {
    Conditions shared{.machine = table.machine.empty() ? machine : table.machine,
                      .study = table.study,
                      .takes = table.takes,
                      .field = table.field,
                      .scale = table.scale,
                      .row = {},
                      .chosen = {},
                      .options = settings_of(table.place, table.options, "options"),
                      .at_least = settings_of(table.place, table.at_least, "at_least"),
                      .any = table.any};
    for (const FigureTable& figure : table.figures) {
      Conditions conditions = shared;
      if (!figure.field.empty()) conditions.field = figure.field;
      if (figure.place.has("scale")) conditions.scale = figure.scale;
      if (conditions.field.empty()) figure.place.refuse("field", "is missing");
      conditions.row = fields_of_row(figure.place, figure.row, "row");
      conditions.chosen = fields_of_row(figure.place, figure.chosen, "chosen");
      if (!measured.emplace(figure.id, std::move(conditions)).second)
        figure.place.refuse("id", "is listed twice");
    }
  }
};

constexpr std::array kRoles = {Role::calibration, Role::selected, Role::validation, Role::bound,
                               Role::follows};

const Known& known() {
  static const Known made;
  return made;
}

Role role_of(std::string_view text) {
  const auto found = std::ranges::find(kRoles, text, [](Role role) { return to_string(role); });
  if (found == kRoles.end())
    throw InputError(fmt::format("hw/published/published.csv: '{}' is no role", text));
  return *found;
}

std::vector<Figure> read_figures() {
  std::vector<Figure> figures;
  std::string_view text = embedded("published");
  text.remove_prefix(text.find('\n') + 1);  // heading
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::vector<std::string> f = fields_of(text.substr(0, end));
    Figure figure{f.at(0),
                  f.at(1),
                  f.at(2),
                  f.at(3),
                  hw::parse_real(f.at(4)),
                  f.at(5),
                  f.at(6),
                  role_of(f.at(7)),
                  hw::parse_real(f.at(8)),
                  f.at(9),
                  {},
                  {}};
    const auto conditions = known().measured.find(figure.id);
    if (conditions != known().measured.end()) figure.conditions = conditions->second;
    const auto reason = known().missing.find(figure.id);
    if (reason != known().missing.end()) figure.missing = reason->second;
    if (!figure.conditions && figure.missing.empty())
      throw InputError(fmt::format("hw/published/conditions.toml: {}: is missing", figure.id));
    figures.push_back(std::move(figure));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return figures;
}

const hw::Parameter* find(const std::vector<hw::Parameter>& options, std::string_view name) {
  const auto option = std::ranges::find(options, name, &hw::Parameter::key);
  return option == options.end() ? nullptr : &*option;
}

double magnitude(const hw::Parameter& option) {
  return std::visit(
      [](auto* p) -> double {
        using T = std::remove_pointer_t<decltype(p)>;
        if constexpr (std::is_same_v<T, int> || std::is_same_v<T, std::int64_t> ||
                      std::is_same_v<T, double>) {
          return static_cast<double>(*p);
        } else if constexpr (std::is_same_v<T, Bytes> || std::is_same_v<T, Time>) {
          return static_cast<double>(hw::detail::whole(*p));
        } else {
          throw std::logic_error("conditions.toml: at_least: an option that is no quantity");
        }
      },
      option.value);
}

bool contains(const Conditions::Settings& settings, std::string_view name) {
  return std::ranges::find(settings, name, &Conditions::Settings::value_type::first) != settings.end();
}

// A value of result.json as the command line has it.
std::string plain(const Json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

// Whether a run's option is at least what the reference has. Text of a foreign file may be anything.
bool reaches(const Study& study, StudySettings& reference, const std::string& name, const Json& parameters) {
  if (!parameters.contains(name)) return false;
  StudySettings run(study, {});
  const hw::Parameter* option = find(run.list(), name);
  try {
    hw::assign(*option, plain(parameters[name]));
  } catch (const InputError&) {
    return false;
  }
  return magnitude(*option) >= magnitude(*find(reference.list(), name));
}

// The preset that a figure is of, read once.
const hw::Machine& machine_of(const Conditions& conditions) {
  static std::map<std::string, hw::Machine, std::less<>> machines;
  static std::mutex reading;
  const std::scoped_lock lock(reading);
  const auto known = machines.find(conditions.machine);
  return known != machines.end()
             ? known->second
             : machines.emplace(conditions.machine, hw::load_machine(conditions.machine)).first->second;
}

bool allows(const Conditions& conditions, const Study& study, const Json& parameters) {
  StudySettings reference(study, conditions.arguments());
  reference.settle(machine_of(conditions));
  const auto free = [&](const std::string& name) {
    return name == kModelOption || std::ranges::find(conditions.any, name) != conditions.any.end() ||
           contains(conditions.at_least, name) ||
           (conditions.row.contains(name) && !contains(conditions.options, name));
  };
  const Json expected = to_json(reference.effective());
  const auto same = [&](const Json& one, const Json& other) {
    for (const auto& [name, value] : one.items()) {
      if (!free(name) && (!other.contains(name) || other[name] != value)) return false;
    }
    return true;
  };
  return parameters.is_object() && same(expected, parameters) && same(parameters, expected) &&
         std::ranges::all_of(conditions.at_least, [&](const auto& setting) {
           return reaches(study, reference, setting.first, parameters);
         });
}

bool equal(const Value& one, const Value& other) {
  if (one.text() != nullptr) return other.text() != nullptr && *one.text() == *other.text();
  return other.integer() != nullptr && *one.integer() == *other.integer();
}

}  // namespace

std::string_view to_string(Role role) {
  switch (role) {
    case Role::calibration:
      return "calibration";
    case Role::selected:
      return "selected";
    case Role::validation:
      return "validation";
    case Role::bound:
      return "bound";
    case Role::follows:
      return "follows";
  }
  return "";
}

std::vector<std::string> Conditions::arguments() const {
  std::vector<std::string> words;
  const auto add = [&](const std::string& name, const std::string& value) {
    words.push_back("--" + name);
    words.push_back(value);
  };
  for (const auto& [name, value] : row.entries()) {
    if (!cm384::studies::contains(options, name)) add(name, plain(to_json(Row{{name, value}})[name]));
  }
  for (const auto& [name, value] : options) add(name, value);
  for (const auto& [name, value] : at_least) add(name, value);
  return words;
}

std::string Conditions::command() const {
  const std::string on = machine == hw::kDefaultMachine ? "" : fmt::format("--machine {} ", machine);
  return fmt::format("run {} {}{}", study, on, fmt::join(arguments(), " "));
}

std::optional<double> Conditions::predicted_by(const Row& measured) const {
  for (const Row* fields : {&row, &chosen})
    for (const auto& [name, value] : fields->entries())
      if (!equal(value, measured[name])) return {};
  const Row flat = flatten(measured);
  if (flat[field].integer() == nullptr && flat[field].real() == nullptr) return {};
  return flat[field].number() * scale;
}

const std::vector<Figure>& published_figures() {
  static const std::vector<Figure> figures = read_figures();
  return figures;
}

bool is_run(const Figure& figure, std::string_view only, bool with_long) {
  return figure.conditions && figure.id.starts_with(only) &&
         (with_long || figure.conditions->takes.empty() || figure.id == only);
}

StudySettings::StudySettings(const Study& study, const std::vector<std::string>& arguments)
    : own_(study.options()) {
  groups_.push_back({fmt::format("options of `run {}`", study.name), own_->list()});
  if (study.fabric) {
    for (hw::Parameter& option : hw::list_parameters(fabric_))
      groups_.front().options.push_back(std::move(option));
  }
  given_ = parse_options(groups_, arguments, study.positional);
  own_->follow(given_);
}

StudyResult StudySettings::run(StudyContext context) const {
  context.fabric = fabric_;
  context.given = given_;
  return own_->run(context);
}

std::string machine_of_figures(const hw::Machine& machine) {
  const auto of_it = [&](const Figure& figure) {
    return figure.conditions && figure.conditions->machine == machine.preset;
  };
  const bool own = std::ranges::any_of(published_figures(), of_it);
  return own ? machine.preset : std::string(hw::kDefaultMachine);
}

PublishedFigures::PublishedFigures(const Study& study, const Json& parameters,
                                   std::string_view unchanged_machine) {
  for (const Figure& figure : published_figures()) {
    if (figure.conditions && figure.conditions->study == study.name &&
        figure.conditions->machine == unchanged_machine && allows(*figure.conditions, study, parameters))
      figures_.push_back(&figure);
  }
}

std::vector<Prediction> PublishedFigures::of(const Row& row) const {
  std::vector<Prediction> predictions;
  for (const Figure* figure : figures_) {
    if (const auto value = figure->conditions->predicted_by(row))
      predictions.push_back({figure, figure->conditions->field, *value});
  }
  return predictions;
}

}  // namespace cm384::studies
