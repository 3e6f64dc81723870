// The statistics that OpenTURNS has (statistics.h). Its headers are slow to read: only those that are used.
#include <openturns/ComposedDistribution.hxx>
#include <openturns/KrigingAlgorithm.hxx>
#include <openturns/LHSExperiment.hxx>
#include <openturns/LinearBasisFactory.hxx>
#include <openturns/Log.hxx>
#include <openturns/MartinezSensitivityAlgorithm.hxx>
#include <openturns/MaternModel.hxx>
#include <openturns/RandomGenerator.hxx>
#include <openturns/ResourceMap.hxx>
#include <openturns/SobolIndicesExperiment.hxx>
#include <openturns/TBB.hxx>
#include <openturns/Uniform.hxx>

#include "lab/uncertainty/statistics.h"

namespace cm384::uncertainty {
namespace {

OT::ComposedDistribution unit_cube(std::size_t factors) {
  return OT::ComposedDistribution(
      OT::ComposedDistribution::DistributionCollection(factors, OT::Uniform(0, 1)));
}

Points points_of(const OT::Sample& sample) {
  Points points(sample.getSize(), Point(sample.getDimension()));
  for (std::size_t i = 0; i < points.size(); ++i) {
    for (std::size_t j = 0; j < points[i].size(); ++j) points[i][j] = sample(i, j);
  }
  return points;
}

OT::Sample sample_of(const Points& points) {
  OT::Sample sample(points.size(), points.front().size());
  for (std::size_t i = 0; i < points.size(); ++i) {
    for (std::size_t j = 0; j < points[i].size(); ++j) sample(i, j) = points[i][j];
  }
  return sample;
}

OT::Sample column_of(const Point& values) {
  OT::Sample column(values.size(), 1);
  for (std::size_t i = 0; i < values.size(); ++i) column(i, 0) = values[i];
  return column;
}

class Kriging final : public Surrogate {
 public:
  explicit Kriging(OT::KrigingResult result) : result_(std::move(result)) {}
  Estimate at(const Point& place) const override {
    OT::Point point(place.size());
    for (std::size_t i = 0; i < place.size(); ++i) point[i] = place[i];
    return {result_.getConditionalMean(point)[0], result_.getConditionalMarginalVariance(point)};
  }

 private:
  OT::KrigingResult result_;
};

class OpenTurns final : public Statistics {
 public:
  OpenTurns() {
    OT::TBB::Disable();
    OT::Log::Show(OT::Log::NONE);
    OT::ResourceMap::SetAsString("SobolIndicesExperiment-SamplingMethod", "QMC");
  }

  Points latin_hypercube(std::size_t factors, std::size_t count, std::uint64_t seed) override {
    OT::RandomGenerator::SetSeed(seed);
    return points_of(OT::LHSExperiment(unit_cube(factors), count).generate());
  }

  Points sobol_experiment(std::size_t factors, std::size_t size) override {
    return points_of(OT::SobolIndicesExperiment(unit_cube(factors), size, false).generate());
  }

  SobolIndices sobol_indices(const Points& experiment, const Point& values, std::size_t size) override {
    OT::MartinezSensitivityAlgorithm algorithm(sample_of(experiment), column_of(values), size);
    const OT::Point first = algorithm.getFirstOrderIndices(), total = algorithm.getTotalOrderIndices();
    return {Point(first.begin(), first.end()), Point(total.begin(), total.end())};
  }

  std::unique_ptr<Surrogate> kriging(const Points& points, const Point& values) override {
    const std::size_t factors = points.front().size();
    OT::MaternModel covariance(OT::Point(factors, 1.0), OT::Point(1, 1.0), 2.5);
    // What the kept factors leave open, and steps of a simulator, are no smooth function of these.
    covariance.setNuggetFactor(1e-4);
    OT::KrigingAlgorithm algorithm(sample_of(points), column_of(values), covariance,
                                   OT::LinearBasisFactory(factors).build());
    algorithm.run();
    return std::make_unique<Kriging>(algorithm.getResult());
  }
};

}  // namespace
}  // namespace cm384::uncertainty

const char* cm384_statistics_abi() {
  return cm384::uncertainty::kStatisticsAbi.data();
}

cm384::uncertainty::Statistics* cm384_statistics() {
  static cm384::uncertainty::OpenTurns open_turns;
  return &open_turns;
}
