#include "workloads/frame/schema.h"

#include <string>

namespace cm384::studies {
namespace {

Json object_of(std::span<const Field> fields);

Json type_of(const Field& field) {
  const auto or_null = [](const char* type) { return Json{{"type", {type, "null"}}}; };
  switch (field.type) {
    case FieldType::text:
      return or_null("string");
    case FieldType::integer:
    case FieldType::bytes:
      return or_null("integer");
    case FieldType::number:
    case FieldType::ratio:
      return or_null("number");
    case FieldType::boolean:
      return or_null("boolean");
    case FieldType::object:
      return {{"anyOf", {object_of(field.parts), {{"type", "null"}}}}};
    case FieldType::list:
      return {{"type", "array"}, {"items", object_of(field.parts)}};
  }
  return {};
}

Json interval(std::string_view what) {
  return {{"type", "array"},
          {"items", {{"type", "number"}}},
          {"minItems", 2},
          {"maxItems", 2},
          {"description", what}};
}

Json object_of(std::span<const Field> fields) {
  Json properties = Json::object();
  for (const Field& field : fields) {
    Json property = type_of(field);
    property["description"] = field.sentence;
    property["role"] = field.role == FieldRole::condition ? "condition" : "measure";
    if (const auto unit = unit_of(field.name); !unit.empty()) property["x-unit"] = unit;
    properties[std::string(field.name)] = std::move(property);
  }
  if (properties.contains("mean"))
    properties["interval"] = interval("90 % interval of the mean, of a run with --ensemble");
  return {{"type", "object"}, {"properties", std::move(properties)}, {"additionalProperties", false}};
}

// A row of a study, which a run with --ensemble adds to.
Json row_of(std::span<const Field> fields) {
  Json row = object_of(fields);
  row["properties"]["intervals"] = {
      {"type", "object"}, {"additionalProperties", interval("90 % interval of a number of the row")}};
  row["properties"]["ensemble"] = {{"type", "integer"},
                                   {"description", "members that the intervals are over"}};
  return row;
}

}  // namespace

Json result_schema(std::span<const Study> studies) {
  Json rows_of = Json::array();
  for (const Study& study : studies) {
    rows_of.push_back(
        {{"if", {{"properties", {{"study", {{"const", study.name}}}}}}},
         {"then", {{"properties", {{"rows", {{"type", "array"}, {"items", row_of(study.fields)}}}}}}}});
  }
  const Json text = {{"type", "string"}}, number = {{"type", "number"}}, whole = {{"type", "integer"}};
  const Json part = {{"type", "object"}, {"properties", {{"name", text}, {"us", number}, {"share", number}}}};
  const Json list_of_parts = {{"type", "array"}, {"items", part}};
  const Json line = {
      {"type", "object"},
      {"required", {"path", "line", "function", "count", "cycles", "lanes", "stalls"}},
      {"properties",
       {{"path", text}, {"line", whole}, {"function", text}, {"count", whole}, {"cycles", number}}}};
  const Json kernel_of_lines = {
      {"type", "object"},
      {"required", {"kernel", "blocks", "cycles", "lanes", "stalls", "lines", "sources"}},
      {"properties", {{"kernel", text}, {"blocks", whole}, {"lines", {{"type", "array"}, {"items", line}}}}}};
  const Json profile_of_lines = {
      {"type", "object"},
      {"required", {"cycle_ps", "kernels"}},
      {"properties", {{"cycle_ps", number}, {"kernels", {{"type", "array"}, {"items", kernel_of_lines}}}}}};
  return {
      {"$schema", "https://json-schema.org/draft/2020-12/schema"},
      {"title", "result.json of cm384"},
      {"type", "object"},
      {"required",
       {"schema", "study", "machine", "seed", "complete", "parameters", "machine_overrides", "rows",
        "simulator"}},
      {"properties",
       {{"schema", {{"const", 1}}},
        {"study", text},
        {"invocation",
         {{"type", "object"},
          {"description", "not part of the result: everything else is the same whenever the run is repeated"},
          {"required", {"command", "date"}},
          {"properties", {{"command", text}, {"date", {{"type", "string"}, {"format", "date-time"}}}}}}},
        {"machine", text},
        {"seed", whole},
        {"complete",
         {{"type", "boolean"},
          {"description", "false: interrupted, or the machine hung; rows are those before"}}},
        {"parameters", {{"type", "object"}, {"description", "every effective option of the study"}}},
        {"machine_overrides", {{"type", "object"}, {"additionalProperties", text}}},
        {"rows", {{"type", "array"}, {"items", {{"type", "object"}}}}},
        {"conditions",
         {{"type", "array"},
          {"items", text},
          {"description", "fields that say what a row is of; all others were measured"}}},
        {"stopped",
         {{"type", "object"},
          {"description", "of a run whose simulated machine did not come to its end"},
          {"required", {"kind", "report"}},
          {"properties", {{"kind", {{"enum", {"hang", "fault", "time limit"}}}}, {"report", text}}}}},
        {"notes", {{"type", "array"}, {"items", text}}},
        {"ensemble", {{"type", "object"}, {"required", {"members", "names", "discrepancy", "values"}}}},
        {"explanations",
         {{"type", "array"},
          {"description", "with --explain: what bound the run, of each machine that the study built"},
          {"items",
           {{"type", "object"},
            {"required", {"span_us", "followed_us", "error_us", "path", "busiest", "gains"}},
            {"properties",
             {{"span_us", number},
              {"followed_us", number},
              {"error_us", number},
              {"path", list_of_parts},
              {"busiest", list_of_parts},
              {"gains",
               {{"type", "array"},
                {"items",
                 {{"type", "object"},
                  {"required", {"name", "predicted_us", "at_least", "share", "changes"}},
                  {"properties",
                   {{"name", text},
                    {"predicted_us", number},
                    {"at_least",
                     {{"type", "boolean"},
                      {"description", "waits that the prediction does not follow may become shorter too"}}},
                    {"at_most_us",
                     {{"type", "number"}, {"description", "where the prediction is not told from nothing"}}},
                    {"share", number},
                    {"changes", {{"type", "array"}, {"items", text}}},
                    {"measured_us", number}}}}}}}}}}}}},
        {"lines",
         {{"type", "array"},
          {"description",
           "with --profile: where the kernels' cycles went by source line, of each machine that the study "
           "built"},
          {"items", profile_of_lines}}},
        {"inputs", {{"type", "array"}, {"items", {{"type", "object"}, {"required", {"path", "hash"}}}}}},
        {"files",
         {{"type", "array"},
          {"description",
           "with --out: names of further files there that are of this run; others are of older ones"},
          {"items", text}}},
        {"simulator",
         {{"type", "object"},
          {"required", {"wall_s", "simulated_us", "instructions", "packet_hops", "events", "peak_rss_MB"}},
          {"properties",
           {{"wall_s", number},
            {"simulated_us", number},
            {"instructions", whole},
            {"packet_hops", whole},
            {"events", whole},
            {"threads",
             {{"type", "integer"},
              {"description",
               "of the host, that ran modules side by side; of several machines, of the one that had "
               "most"}}},
            {"threads_why", {{"type", "string"}, {"description", "what decided the number of threads"}}},
            {"threads_what_if",
             {{"type", "object"},
              {"description",
               "with --threads-what-if: how much faster than one thread so many would be at most"},
              {"properties", {{"threads", whole}, {"speedup", number}}}}},
            {"peak_rss_MB", number}}}}}}},
      {"allOf", rows_of}};
}

}  // namespace cm384::studies
