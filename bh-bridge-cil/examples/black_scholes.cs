// Prices of European call options by the formula of Black and Scholes.
//
//   black_scholes [OPTIONS [DAYS]]
using System;
using Bh;
using NdArray = Bh.NdArray<double>;

static class BlackScholes
{
    // The distribution function of the normal distribution.
    static NdArray NormalDistribution(NdArray x) => 0.5 * (x * -Math.Sqrt(0.5)).Erfc();

    static NdArray CallPrice(NdArray price, double strike, double rate, double volatility, double years)
    {
        double spread = volatility * Math.Sqrt(years);
        var d1 = ((price / strike).Log() + (rate + 0.5 * volatility * volatility) * years) / spread;
        var d2 = d1 - spread;
        return price * NormalDistribution(d1) - strike * Math.Exp(-rate * years) * NormalDistribution(d2);
    }

    static void Main(string[] arguments)
    {
        int count = arguments.Length > 0 ? int.Parse(arguments[0]) : 1000000;
        int days = arguments.Length > 1 ? int.Parse(arguments[1]) : 10;
        var price = Create.Uniform<double>(count, 42) * 4.0 + 58.0;
        Context.Default.Sync();
        var clock = System.Diagnostics.Stopwatch.StartNew();
        double checksum = 0;
        for (int day = 1; day <= days; ++day)
        {
            checksum += CallPrice(price, 65.0, 0.08, 0.3, day / 365.0).Sum() / count;
        }
        Fingerprint.Seconds(clock);
        Fingerprint.Print("checksum", checksum);
        Fingerprint.Print("prices", CallPrice(price, 65.0, 0.08, 0.3, days / 365.0));
    }
}
