% Prices of European call options by the formula of Black and Scholes, added up over days until they expire.
1;
function d = normal_distribution(x)
  d = 0.5 * erfc(x * -sqrt(0.5));
end

function price = call_price(price, strike, rate, volatility, years)
  spread = volatility * sqrt(years);
  d1 = (log(price / strike) + (rate + 0.5 * volatility * volatility) * years) / spread;
  d2 = d1 - spread;
  price = price .* normal_distribution(d1) - strike * exp(-rate * years) * normal_distribution(d2);
end

if exist("n", "var")
  rand("seed", 42);
  price = rand(n, 1) * 4 + 58;
else
  n = 10001; steps = 10;
  price = linspace(58, 62, n)';
end
tic
checksum = 0;
for day = 1:steps
  checksum = checksum + sum(call_price(price, 65, 0.08, 0.3, day / 365)) / n;
end
checksum = checksum + 0;
seconds = toc;
prices = call_price(price, 65, 0.08, 0.3, steps / 365);
printf("%.8f %.8f\n", checksum, max(prices));
