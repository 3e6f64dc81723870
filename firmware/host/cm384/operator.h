// What the host's part of an operator project is written with: the operator's definition, its tiling data and
// its tiling function, so that `kernel build --op FOLDER --shape ..` can run that function. Written from
// public documentation and call sites of open projects.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace ge {

// Numbers as of the kernel's DT_* (assumed).
enum DataType {
  DT_FLOAT = 0,
  DT_FLOAT16 = 1,
  DT_INT8 = 2,
  DT_INT32 = 3,
  DT_UINT8 = 4,
  DT_INT16 = 6,
  DT_UINT16 = 7,
  DT_UINT32 = 8,
  DT_INT64 = 9,
  DT_UINT64 = 10,
  DT_DOUBLE = 11,
  DT_BOOL = 12,
  DT_BF16 = 27,
  DT_INT4 = 29,
  DT_UNDEFINED = 28
};
enum Format {
  FORMAT_NCHW = 0,
  FORMAT_NHWC = 1,
  FORMAT_ND = 2,
  FORMAT_NC1HWC0 = 3,
  FORMAT_FRACTAL_Z = 4,
  FORMAT_FRACTAL_NZ = 29,
  FORMAT_RESERVED = 40
};
using graphStatus = uint32_t;
inline constexpr graphStatus GRAPH_SUCCESS = 0, GRAPH_FAILED = 0xffffffff, GRAPH_PARAM_INVALID = 50331649;
inline int GetSizeByDataType(DataType type) {
  switch (type) {
    case DT_FLOAT:
    case DT_INT32:
    case DT_UINT32:
      return 4;
    case DT_FLOAT16:
    case DT_BF16:
    case DT_INT16:
    case DT_UINT16:
      return 2;
    case DT_INT64:
    case DT_UINT64:
    case DT_DOUBLE:
      return 8;
    case DT_INT8:
    case DT_UINT8:
    case DT_BOOL:
      return 1;
    default:
      return -1;
  }
}

}  // namespace ge

namespace gert {

class Shape {
 public:
  Shape() = default;
  Shape(std::initializer_list<int64_t> dims) : dims_(dims) {}
  int64_t GetDim(size_t n) const { return n < dims_.size() ? dims_[n] : 0; }
  size_t GetDimNum() const { return dims_.size(); }
  int64_t GetShapeSize() const {
    int64_t size = 1;
    for (const int64_t dim : dims_) size *= dim;
    return size;
  }
  bool IsScalar() const { return dims_.empty(); }
  void SetDimNum(size_t count) { dims_.resize(count); }
  void SetDim(size_t n, int64_t dim) { dims_.at(n) = dim; }
  Shape& AppendDim(int64_t dim) {
    dims_.push_back(dim);
    return *this;
  }
  int64_t operator[](size_t n) const { return GetDim(n); }
  int64_t& operator[](size_t n) { return dims_.at(n); }
  bool operator==(const Shape& other) const { return dims_ == other.dims_; }
  bool operator!=(const Shape& other) const { return dims_ != other.dims_; }

 private:
  std::vector<int64_t> dims_;
};
class StorageShape {
 public:
  const Shape& GetStorageShape() const { return shape_; }
  const Shape& GetOriginShape() const { return shape_; }
  Shape& MutableStorageShape() { return shape_; }
  Shape& MutableOriginShape() { return shape_; }

 private:
  Shape shape_;
};
class CompileTimeTensorDesc {
 public:
  CompileTimeTensorDesc() = default;
  CompileTimeTensorDesc(ge::DataType type, ge::Format format) : type_(type), format_(format) {}
  ge::DataType GetDataType() const { return type_; }
  ge::Format GetStorageFormat() const { return format_; }
  ge::Format GetOriginFormat() const { return format_; }

 private:
  ge::DataType type_ = ge::DT_UNDEFINED;
  ge::Format format_ = ge::FORMAT_ND;
};
class Tensor : public StorageShape, public CompileTimeTensorDesc {
 public:
  Tensor() = default;
  Tensor(const StorageShape& shape, const CompileTimeTensorDesc& desc)
      : StorageShape(shape), CompileTimeTensorDesc(desc) {}
  int64_t GetShapeSize() const { return GetStorageShape().GetShapeSize(); }
  // Values are not known when tiling is computed here.
  template <typename T>
  const T* GetData() const {
    return nullptr;
  }
};
template <typename T>
class TypedContinuousVector {
 public:
  std::vector<T> values;
  size_t GetSize() const { return values.size(); }
  const T* GetData() const { return values.data(); }
};
using ContinuousVector = TypedContinuousVector<int64_t>;

// Values of attributes, in the order of the definition.
class RuntimeAttrs {
 public:
  struct Value {
    int64_t whole = 0;
    float number = 0;
    bool truth = false;
    std::string text;
    TypedContinuousVector<int64_t> list;
    bool is_whole = false, is_truth = false, is_text = false, is_list = false;
  };
  std::vector<Value> values;

  size_t GetAttrNum() const { return values.size(); }
  const int64_t* GetInt(size_t n) const { return n < values.size() ? &values[n].whole : nullptr; }
  const float* GetFloat(size_t n) const { return n < values.size() ? &values[n].number : nullptr; }
  const bool* GetBool(size_t n) const { return n < values.size() ? &values[n].truth : nullptr; }
  const char* GetStr(size_t n) const { return n < values.size() ? values[n].text.c_str() : nullptr; }
  const TypedContinuousVector<int64_t>* GetListInt(size_t n) const {
    return n < values.size() ? &values[n].list : nullptr;
  }
  template <typename T>
  const T* GetAttrPointer(size_t n) const {
    if (n >= values.size()) return nullptr;
    const Value& value = values[n];
    const void* at = value.is_truth   ? static_cast<const void*>(&value.truth)
                     : value.is_text  ? static_cast<const void*>(value.text.c_str())
                     : value.is_list  ? static_cast<const void*>(&value.list)
                     : value.is_whole ? static_cast<const void*>(&value.whole)
                                      : static_cast<const void*>(&value.number);
    return static_cast<const T*>(at);
  }
};

class TilingData {
 public:
  static constexpr size_t kMost = 64 << 10;
  void* GetData() { return bytes_; }
  size_t GetCapacity() const { return kMost; }
  size_t GetDataSize() const { return size_; }
  void SetDataSize(size_t size) { size_ = size; }

 private:
  alignas(64) uint8_t bytes_[kMost] = {};
  size_t size_ = 0;
};

// Inputs that are not there are null.
class ShapeContext {
 public:
  struct Given {
    bool there = false;
    StorageShape shape;
    CompileTimeTensorDesc desc;
    Tensor tensor;
  };
  std::vector<Given> inputs, outputs;
  RuntimeAttrs attributes;
  std::string name;

  const char* GetNodeName() const { return name.c_str(); }
  const char* GetNodeType() const { return name.c_str(); }
  const RuntimeAttrs* GetAttrs() const { return &attributes; }
  size_t GetComputeNodeInputNum() const { return inputs.size(); }
  size_t GetComputeNodeOutputNum() const { return outputs.size(); }
  const CompileTimeTensorDesc* GetInputDesc(size_t n) const {
    return Has(inputs, n) ? &inputs[n].desc : nullptr;
  }
  const CompileTimeTensorDesc* GetOptionalInputDesc(size_t n) const { return GetInputDesc(n); }
  const CompileTimeTensorDesc* GetOutputDesc(size_t n) const {
    return Has(outputs, n) ? &outputs[n].desc : nullptr;
  }

 protected:
  static bool Has(const std::vector<Given>& list, size_t n) { return n < list.size() && list[n].there; }
};
class TilingContext : public ShapeContext {
 public:
  const StorageShape* GetInputShape(size_t n) const { return Has(inputs, n) ? &inputs[n].shape : nullptr; }
  const StorageShape* GetOptionalInputShape(size_t n) const { return GetInputShape(n); }
  const StorageShape* GetDynamicInputShape(size_t n, size_t) const { return GetInputShape(n); }
  const StorageShape* GetOutputShape(size_t n) const { return Has(outputs, n) ? &outputs[n].shape : nullptr; }
  const Tensor* GetInputTensor(size_t n) const { return Has(inputs, n) ? &inputs[n].tensor : nullptr; }
  const Tensor* GetOptionalInputTensor(size_t n) const { return GetInputTensor(n); }
  const void* GetPlatformInfo() const { return this; }
  const void* GetCompileInfo() const { return nullptr; }
  ge::graphStatus SetBlockDim(uint32_t blocks) {
    block_dim_ = blocks;
    return ge::GRAPH_SUCCESS;
  }
  uint32_t GetBlockDim() const { return block_dim_; }
  ge::graphStatus SetTilingKey(uint64_t key) {
    key_ = key;
    return ge::GRAPH_SUCCESS;
  }
  uint64_t GetTilingKey() const { return key_; }
  void SetNeedAtomic(bool) {}
  void SetScheduleMode(uint32_t) {}
  size_t* GetWorkspaceSizes(size_t count) {
    workspaces_.resize(count);
    return workspaces_.data();
  }
  const std::vector<size_t>& workspaces() const { return workspaces_; }
  TilingData* GetRawTilingData() { return &data_; }
  template <typename T>
  T* GetTilingData() {
    data_.SetDataSize(sizeof(T));
    return static_cast<T*>(data_.GetData());
  }

 private:
  uint32_t block_dim_ = 1;
  uint64_t key_ = 0;
  std::vector<size_t> workspaces_;
  TilingData data_;
};
class InferShapeContext : public ShapeContext {
 public:
  const Shape* GetInputShape(size_t n) const {
    return Has(inputs, n) ? &inputs[n].shape.GetStorageShape() : nullptr;
  }
  const Shape* GetOptionalInputShape(size_t n) const { return GetInputShape(n); }
  const Tensor* GetInputTensor(size_t n) const { return Has(inputs, n) ? &inputs[n].tensor : nullptr; }
  Shape* GetOutputShape(size_t n) {
    return n < outputs.size() ? &outputs[n].shape.MutableStorageShape() : nullptr;
  }
};
class InferDataTypeContext {
 public:
  ge::DataType GetInputDataType(size_t) const { return ge::DT_UNDEFINED; }
  ge::graphStatus SetOutputDataType(size_t, ge::DataType) { return ge::GRAPH_SUCCESS; }
};
class TilingParseContext {};

}  // namespace gert

namespace cm384_host {

using TilingFunction = ge::graphStatus (*)(gert::TilingContext*);
using InferShapeFunction = ge::graphStatus (*)(gert::InferShapeContext*);

}  // namespace cm384_host

namespace ops {

enum Option { IGNORE = 0, OPTIONAL = 1, REQUIRED = 2, DYNAMIC = 3, VIRTUAL = 4 };

class OpParamDef {
 public:
  explicit OpParamDef(std::string name) : name(std::move(name)) {}
  OpParamDef& ParamType(Option of) {
    option = of;
    return *this;
  }
  OpParamDef& DataType(std::vector<ge::DataType> list) {
    types = std::move(list);
    return *this;
  }
  OpParamDef& DataTypeList(std::vector<ge::DataType> list) { return DataType(std::move(list)); }
  OpParamDef& Format(std::vector<ge::Format> list) {
    formats = std::move(list);
    return *this;
  }
  OpParamDef& FormatList(std::vector<ge::Format> list) { return Format(std::move(list)); }
  OpParamDef& UnknownShapeFormat(const std::vector<ge::Format>&) { return *this; }
  OpParamDef& ValueDepend(Option) { return *this; }
  OpParamDef& AutoContiguous() { return *this; }
  OpParamDef& IgnoreContiguous() { return *this; }
  template <typename T>
  OpParamDef& InitValue(const T&) {
    return *this;
  }
  OpParamDef& Scalar() { return *this; }

  std::string name;
  Option option = REQUIRED;
  std::vector<ge::DataType> types;
  std::vector<ge::Format> formats;
};
class OpAttrDef {
 public:
  explicit OpAttrDef(std::string name) : name(std::move(name)) {}
  OpAttrDef& AttrType(Option of) {
    option = of;
    return *this;
  }
  OpAttrDef& Int(int64_t value = 0) {
    value_.is_whole = true;
    value_.whole = value;
    return *this;
  }
  OpAttrDef& Float(float value = 0) {
    value_.number = value;
    return *this;
  }
  OpAttrDef& Bool(bool value = false) {
    value_.is_truth = true;
    value_.truth = value;
    return *this;
  }
  OpAttrDef& String(const char* value = "") {
    value_.is_text = true;
    value_.text = value;
    return *this;
  }
  OpAttrDef& ListInt(const std::vector<int64_t>& value = {}) {
    value_.is_list = true;
    value_.list.values = value;
    return *this;
  }
  gert::RuntimeAttrs::Value& value() { return value_; }

  std::string name;
  Option option = REQUIRED;

 private:
  gert::RuntimeAttrs::Value value_;
};

class OpAICoreConfig;
class OpAICoreDef {
 public:
  OpAICoreDef& SetTiling(cm384_host::TilingFunction function) {
    tiling = function;
    return *this;
  }
  template <typename... Config>
  OpAICoreDef& AddConfig(const char*, const Config&...) {
    return *this;
  }
  cm384_host::TilingFunction tiling = nullptr;
};
class OpMC2Def {
 public:
  OpMC2Def& HcclGroup(const char*) { return *this; }
};

class OpDef {
 public:
  explicit OpDef(const char* type) : type(type) {}
  OpParamDef& Input(const char* name) { return add(inputs, name); }
  OpParamDef& Output(const char* name) { return add(outputs, name); }
  OpAttrDef& Attr(const char* name) {
    attributes.push_back(std::make_unique<OpAttrDef>(name));
    return *attributes.back();
  }
  OpDef& SetInferShape(cm384_host::InferShapeFunction function) {
    infer_shape = function;
    return *this;
  }
  template <typename Function>
  OpDef& SetInferDataType(Function) {
    return *this;
  }
  OpAICoreDef& AICore() { return core_; }
  OpMC2Def& MC2() { return group_; }

  std::string type;
  std::vector<std::unique_ptr<OpParamDef>> inputs, outputs;
  std::vector<std::unique_ptr<OpAttrDef>> attributes;
  cm384_host::InferShapeFunction infer_shape = nullptr;

 private:
  template <typename List>
  static OpParamDef& add(List& list, const char* name) {
    list.push_back(std::make_unique<OpParamDef>(name));
    return *list.back();
  }
  OpAICoreDef core_;
  OpMC2Def group_;
};
// A configuration of its own for a chip: what is of all chips counts.
class OpAICoreConfig {
 public:
  OpParamDef& Input(const char* name) {
    given_.push_back(std::make_unique<OpParamDef>(name));
    return *given_.back();
  }
  OpParamDef& Output(const char* name) { return Input(name); }
  OpAICoreConfig& DynamicCompileStaticFlag(bool) { return *this; }
  OpAICoreConfig& DynamicFormatFlag(bool) { return *this; }
  OpAICoreConfig& DynamicRankSupportFlag(bool) { return *this; }
  OpAICoreConfig& DynamicShapeSupportFlag(bool) { return *this; }
  OpAICoreConfig& NeedCheckSupportFlag(bool) { return *this; }
  OpAICoreConfig& PrecisionReduceFlag(bool) { return *this; }
  OpAICoreConfig& ExtendCfgInfo(const char*, const char*) { return *this; }

 private:
  std::vector<std::unique_ptr<OpParamDef>> given_;
};

}  // namespace ops

namespace cm384_host {

// Of all sources of a project.
struct Registered {
  std::map<std::string, std::function<std::unique_ptr<ops::OpDef>()>> definitions;
  std::map<std::string, TilingFunction> tilings;
  std::map<std::string, InferShapeFunction> shapes;
};
inline Registered& registered() {
  static Registered made;
  return made;
}
// `IMPL_OP_OPTILING(X).Tiling(f).TilingParse<T>(g)`.
class Implementation {
 public:
  explicit Implementation(const char* type) : type_(type) {}
  Implementation& Tiling(TilingFunction function) {
    registered().tilings[type_] = function;
    return *this;
  }
  Implementation& InferShape(InferShapeFunction function) {
    registered().shapes[type_] = function;
    return *this;
  }
  template <typename Info, typename Function>
  Implementation& TilingParse(Function) {
    return *this;
  }
  template <typename Function>
  Implementation& InferDataType(Function) {
    return *this;
  }
  Implementation& InputsDataDependency(std::initializer_list<int32_t>) { return *this; }

 private:
  std::string type_;
};

}  // namespace cm384_host

#define OP_ADD(Name)                       \
  static const bool cm384_added_##Name = ( \
      cm384_host::registered().definitions[#Name] = [] { return std::make_unique<Name>(#Name); }, true)
#define IMPL_OP_OPTILING(Name) \
  static cm384_host::Implementation cm384_tiling_of_##Name = cm384_host::Implementation(#Name)
#define IMPL_OP_INFERSHAPE(Name) \
  static cm384_host::Implementation cm384_shape_of_##Name = cm384_host::Implementation(#Name)
#define IMPL_OP(Name) \
  static cm384_host::Implementation cm384_impl_of_##Name = cm384_host::Implementation(#Name)

// Tiling data: what the kernel's structure of that name has, field by field, in C++'s layout.
#define BEGIN_TILING_DATA_DEF(Name) struct alignas(8) Name {
#define TILING_DATA_FIELD_DEF(type, name) \
  type name##_{};                         \
  void set_##name(type value) {           \
    name##_ = value;                      \
  }                                       \
  type get_##name() const {               \
    return name##_;                       \
  }
#define TILING_DATA_FIELD_DEF_ARR(type, count, name) \
  type name##_[count]{};                             \
  void set_##name(const type* values) {              \
    std::memcpy(name##_, values, sizeof name##_);    \
  }                                                  \
  type* get_##name() {                               \
    return name##_;                                  \
  }
#define TILING_DATA_FIELD_DEF_STRUCT(type, name) type name{};
#define CM384_TILING_MEMBERS                                       \
  void SaveToBuffer(void* to, size_t most) const {                 \
    if (sizeof *this <= most) std::memcpy(to, this, sizeof *this); \
  }                                                                \
  size_t GetDataSize() const {                                     \
    return sizeof *this;                                           \
  }
#define END_TILING_DATA_DEF \
  CM384_TILING_MEMBERS      \
  }
#define REGISTER_TILING_DATA_CLASS(Name, Struct)

#define OP_LOGE(...) static_cast<void>(0)
#define OP_LOGD(...) static_cast<void>(0)
#define OP_LOGI(...) static_cast<void>(0)
#define OP_LOGW(...) static_cast<void>(0)
