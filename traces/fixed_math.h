// Elementary functions for draws that decide simulated times: additions, multiplications and divisions in one
// order, so that the bits are the same on every machine. Those of the C library, and what Boost makes of
// them, are chosen by the processor (with or without fused multiply-add) and differ in the last place.
#pragma once

namespace cm384::traces {

// Of a normal number above 0; within two units in the last place.
double natural_log(double x);
// e^x for x from -700 to 700, within two units in the last place.
double exponential(double x);
// `base` times itself, `exponent` factors; 1 for none.
double power(double base, unsigned exponent);
// Quantile of the standard normal distribution at a share above 0 and below 1, to a relative 1e-15: Wichura,
// Algorithm AS 241 (PPND16), Applied Statistics 37 (1988).
double normal_quantile(double share);

}  // namespace cm384::traces
