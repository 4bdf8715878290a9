// Canonical mathematics: our own elementary functions, built of fma, division and sqrt only, so that every
// machine and every instruction set gives the same bits (docs/arithmetic.md). Nothing on the way to logits or
// samples, load-time constants included, calls libm's exp, log, sin, cos, pow, tanh or erf.
//
// The float functions have twins on SIMD registers in kernels/: they are straight-line (no table, no branch
// that a select can't replace), and math_constants.h holds their constants and exact order of operations. A
// NaN gives a NaN. Pure functions, for any thread; the caller has set rounding to nearest.
#pragma once

namespace sluice {

// --- float: on the token path. At most 2 ulp from the true value (Exp, Log), 4 ulp (the others). ---
// e^x. Below −87.33… the result is 0 (no subnormals), above 88.72… infinity.
float Exp(float x);
float Tanh(float x);
float Sigmoid(float x);  // 1 / (1 + e^−x)
float Erf(float x);
float Softplus(float x);  // log(1 + e^x); 0 where Exp is
float Log(float x);       // natural; −infinity at 0, NaN below

// --- double: load-time constants and samplers. At most 1 ulp from the true value (PowDouble 2). ---
double ExpDouble(double x);
double LogDouble(double x);                      // −infinity at 0, NaN below
double PowDouble(double base, double exponent);  // 0 < base < infinity; NaN elsewhere
double SinDouble(double x);                      // |x| < 2^30; NaN elsewhere
double CosDouble(double x);

}  // namespace sluice
