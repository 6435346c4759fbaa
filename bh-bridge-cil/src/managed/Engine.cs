// The engine: bh's own library, or .NET if that is missing.
using System;

namespace Bh
{
    /// <summary>
    /// Arrays are computed by bh's own library. Where it cannot be found, .NET does it, one operation at a time and on one thread,
    /// and a line on standard error says so. BH_ENGINE=managed in the environment asks for that, without a word; BH_ENGINE=native has the program
    /// fail instead.
    /// </summary>
    public static class Engine
    {
        /// <summary>Does .NET compute?</summary>
        public static bool IsManaged { get; } = Choose(Environment.GetEnvironmentVariable("BH_ENGINE"));

        private static bool Choose(string wanted)
        {
            if (wanted == "managed") return true;
            if (!string.IsNullOrEmpty(wanted) && wanted != "native")
            {
                throw new InvalidOperationException("BH_ENGINE is '" + wanted + "', and may be 'managed' or 'native'");
            }
            try
            {
                Native.bh_version();
                return false;
            }
            catch (DllNotFoundException) when (wanted != "native")
            {
                Console.Error.WriteLine("bh: libbh_bridge_c is not found; .NET computes in its place, which is slower (BH_ENGINE=managed)");
                return true;
            }
        }
    }
}
