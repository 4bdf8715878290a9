// Canonical mathematics: our own elementary functions, built of fma, division and sqrt only, so that every
// machine and every instruction set gives the same bits (docs/arithmetic.md). Nothing on the way to logits or
// samples, load-time constants included, calls libm's exp, log, sin, cos, pow, tanh or erf.
//
// The float functions have twins on SIMD registers in kernels/: they are straight-line (no table, no branch that
// a select can't replace), and their polynomials stand in math.cc where the twins can read them.
#pragma once

namespace sluice {

// --- float: on the token path. Errors are in ulp of the true value over the whole range. ---
// e^x. Below −87.33… the result is 0 (no subnormals), above 88.72… infinity; NaN stays NaN.
float Exp(float x);
float Tanh(float x);      // through Exp, odd, ±1 beyond |x| ≈ 9
float Sigmoid(float x);   // 1 / (1 + Exp(−x))
float Erf(float x);
float Softplus(float x);  // log(1 + e^x)
float Log(float x);       // natural; −infinity at 0, NaN below

// --- double: load-time constants and samplers. ---
double ExpDouble(double x);
double LogDouble(double x);
double PowDouble(double base, double exponent);  // base > 0
double SinDouble(double x);                      // |x| < 2^30
double CosDouble(double x);

}  // namespace sluice
