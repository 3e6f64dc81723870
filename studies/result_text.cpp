// Rows as a table for people and as CSV for programs.
#include <fmt/format.h>

#include <algorithm>

#include "studies/result.h"

namespace cm384::studies {
namespace {

// Whether a list is one of named figures, such as phases: [{"name": "send", "mean_us": 51.0}, ...].
bool is_named(const Json& value) {
  return value.is_array() && !value.empty() && std::ranges::all_of(value, [](const Json& item) {
           return item.is_object() && item.size() == 2 && item.contains("name") && item["name"].is_string();
         });
}

// A row without nesting: {"latency_us.mean": 1, "phases.send.mean_us": 51.0}.
void flatten(const Json& object, const std::string& prefix, Json& flat) {
  for (const auto& [key, value] : object.items()) {
    const std::string name = prefix.empty() ? key : prefix + '.' + key;
    if (value.is_object()) {
      flatten(value, name, flat);
    } else if (is_named(value)) {
      for (const Json& item : value) {
        Json rest = item;
        rest.erase("name");
        flatten(rest, name + '.' + item["name"].get<std::string>(), flat);
      }
    } else {
      flat[name] = value;
    }
  }
}

struct Sheet {
  std::vector<std::string> columns;  // in the order of first appearance
  std::vector<Json> rows;
};

Sheet sheet_of(const Json& rows) {
  Sheet sheet;
  for (const Json& row : rows) {
    Json& flat = sheet.rows.emplace_back(Json::object());
    flatten(row, "", flat);
    for (const auto& [key, value] : flat.items()) {
      if (std::ranges::find(sheet.columns, key) == sheet.columns.end()) sheet.columns.push_back(key);
    }
  }
  return sheet;
}

std::string real_text(double value) {
  const double size = value < 0 ? -value : value;
  if (size >= 1000) return fmt::format("{:.0f}", value);
  if (size >= 100) return fmt::format("{:.1f}", value);
  if (size >= 10) return fmt::format("{:.2f}", value);
  return fmt::format("{:.3f}", value);
}

std::string cell_text(const Json& row, const std::string& column) {
  const auto value = row.find(column);
  if (value == row.end() || value->is_null()) return "-";
  if (value->is_string()) return value->get<std::string>();
  if (value->is_boolean()) return value->get<bool>() ? "yes" : "no";
  if (value->is_number_float()) return real_text(value->get<double>());
  return value->dump();
}

bool is_number_column(const Sheet& sheet, const std::string& column) {
  return std::ranges::all_of(sheet.rows, [&](const Json& row) {
    const auto value = row.find(column);
    return value == row.end() || value->is_null() || value->is_number();
  });
}

std::string csv_text(const Json& row, const std::string& column) {
  const auto value = row.find(column);
  if (value == row.end() || value->is_null()) return "";
  const std::string text = value->is_string() ? value->get<std::string>() : value->dump();
  if (text.find_first_of(",\"\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted.append(c == '"' ? 2 : 1, c);
  return quoted + '"';
}

}  // namespace

Json flatten_row(const Json& row) {
  Json flat = Json::object();
  flatten(row, "", flat);
  return flat;
}

std::string to_table(const Json& rows) {
  const Sheet sheet = sheet_of(rows);
  std::vector<std::string> lines(sheet.rows.size() + 2);
  for (const std::string& column : sheet.columns) {
    // People need no column that holds nothing.
    if (std::ranges::all_of(sheet.rows, [&](const Json& row) { return cell_text(row, column) == "-"; }) &&
        sheet.columns.size() > 8)
      continue;
    std::size_t width = column.size();
    for (const Json& row : sheet.rows) width = std::max(width, cell_text(row, column).size());
    const bool right = is_number_column(sheet, column);
    const auto add = [&](std::string& line, const std::string& text) {
      const std::string padding(width - text.size(), ' ');
      line += (line.empty() ? "" : "  ") + (right ? padding + text : text + padding);
    };
    add(lines[0], column);
    add(lines[1], std::string(width, '-'));
    for (std::size_t i = 0; i < sheet.rows.size(); ++i) add(lines[i + 2], cell_text(sheet.rows[i], column));
  }
  std::string text;
  for (std::string& line : lines) {
    line.erase(line.find_last_not_of(' ') + 1);
    if (!line.empty()) text += line + '\n';
  }
  return text;
}

std::string to_csv(const Json& rows) {
  const Sheet sheet = sheet_of(rows);
  std::string text;
  for (const std::string& column : sheet.columns) text += (text.empty() ? "" : ",") + column;
  text += '\n';
  for (const Json& row : sheet.rows) {
    std::string line;
    for (const std::string& column : sheet.columns) {
      if (&column != &sheet.columns.front()) line += ',';
      line += csv_text(row, column);
    }
    text += line + '\n';
  }
  return text;
}

}  // namespace cm384::studies
