// Functions of real numbers that .NET Framework lacks, and those of whole numbers as bh defines them.
using System;

namespace Bh.Managed
{
    internal static class Mathematics
    {
        /// <summary>By Kahan: what rounding 1 + x loses is in the quotient, too.</summary>
        internal static double Log1p(double x)
        {
            double near = 1 + x;
            if (near == 1 || double.IsInfinity(near)) return near == 1 ? x : Math.Log(near);
            return Math.Log(near) * (x / (near - 1));
        }

        internal static double Expm1(double x)
        {
            double near = Math.Exp(x);
            if (near == 1) return x;
            if (near - 1 == -1 || double.IsInfinity(near)) return near - 1;
            return (near - 1) * (x / Math.Log(near));
        }

        internal static double Asinh(double x)
        {
            double size = Math.Abs(x);
            if (size == 0 || double.IsInfinity(x)) return x;
            double value = size > 1e8 ? Math.Log(size) + Math.Log(2) : Log1p(size + size * size / (1 + Math.Sqrt(size * size + 1)));
            return x < 0 ? -value : value;
        }

        internal static double Acosh(double x) =>
            x > 1e8 ? Math.Log(x) + Math.Log(2) : Log1p(x - 1 + Math.Sqrt((x - 1) * (x - 1) + 2 * (x - 1)));

        internal static double Atanh(double x) => x == 0 ? x : 0.5 * Log1p(2 * x / (1 - x));

        internal static double Cbrt(double x)
        {
            if (x == 0 || double.IsNaN(x) || double.IsInfinity(x)) return x;
            double size = Math.Abs(x), root = Math.Pow(size, 1.0 / 3);
            // A step of Newton's, which makes cubes exact.
            root -= (root - size / (root * root)) / 3;
            return x < 0 ? -root : root;
        }

        private static readonly double PerRootPi = 1 / Math.Sqrt(Math.PI);

        /// <summary>A series of positive terms for small arguments: Abramowitz and Stegun, 7.1.6; beyond, 1 - erfc.</summary>
        internal static double Erf(double x)
        {
            if (double.IsNaN(x)) return x;
            if (Math.Abs(x) > 2) return x > 0 ? 1 - Tail(x) : Tail(-x) - 1;
            double term = x, sum = x;
            for (int n = 1; Math.Abs(term) > 1e-17 * Math.Abs(sum); n++)
            {
                term *= 2 * x * x / (2 * n + 1);
                sum += term;
            }
            return 2 * PerRootPi * Math.Exp(-x * x) * sum;
        }

        internal static double Erfc(double x) => x > 2 ? Tail(x) : x < -2 ? 2 - Tail(-x) : 1 - Erf(x);

        /// <summary>erfc of more than 2, by its continued fraction: Abramowitz and Stegun, 7.1.14.</summary>
        private static double Tail(double x)
        {
            if (x > 27.5) return 0;
            double fraction = 0;
            for (int n = 120; n > 0; n--) fraction = n / 2.0 / (x + fraction);
            return PerRootPi * Math.Exp(-x * x) / (x + fraction);
        }

        /// <summary>Rounds down; 0 where the divisor is.</summary>
        internal static long Divide(long a, long b)
        {
            if (b == 0 || b == -1) return b == 0 ? 0 : unchecked(-a);
            long quotient = a / b;
            return a % b != 0 && a < 0 != b < 0 ? quotient - 1 : quotient;
        }

        /// <summary>With the sign of the divisor.</summary>
        internal static long Remainder(long a, long b)
        {
            if (b == 0 || b == -1) return 0;
            long rest = a % b;
            return rest != 0 && rest < 0 != b < 0 ? rest + b : rest;
        }

        /// <summary>With the sign of the dividend.</summary>
        internal static long Modulo(long a, long b) => b == 0 || b == -1 ? 0 : a % b;

        /// <summary>By what is left over, so that quotient and remainder belong together.</summary>
        internal static double FloorDivide(double a, double b)
        {
            if (b == 0) return a / b;
            double rest = a % b, quotient = (a - rest) / b;
            if (rest != 0 && rest < 0 != b < 0) quotient -= 1;
            if (quotient == 0) return a < 0 != b < 0 ? -0.0 : 0.0;
            double floor = Math.Floor(quotient);
            return quotient - floor > 0.5 ? floor + 1 : floor;
        }

        internal static double Remainder(double a, double b)
        {
            double rest = a % b;
            if (rest == 0) return b < 0 ? -0.0 : 0.0;
            return rest < 0 != b < 0 ? rest + b : rest;
        }

        /// <summary>Wraps; of a negative exponent the whole part of the true value.</summary>
        internal static long Power(long a, long exponent, bool isUnsigned)
        {
            if (exponent < 0 && !isUnsigned) return a == 1 ? 1 : a == -1 ? (exponent % 2 == 0 ? 1 : -1) : 0;
            long result = 1;
            for (ulong left = unchecked((ulong)exponent); left != 0; left >>= 1)
            {
                if ((left & 1) != 0) result = unchecked(result * a);
                a = unchecked(a * a);
            }
            return result;
        }

        internal static long ShiftLeft(long a, long count, int bits) => count >= 0 && count < bits ? a << (int)count : 0;

        internal static long ShiftRight(long a, long count, int bits, bool isUnsigned)
        {
            bool isWithin = count >= 0 && count < bits;
            if (isUnsigned) return isWithin ? unchecked((long)((ulong)a >> (int)count)) : 0;
            return isWithin ? a >> (int)count : a < 0 ? -1 : 0;
        }
    }
}
