% Prices of European call options by the formula of Black and Scholes.
1;
function c = cumulative(d)
  % Abramowitz and Stegun 26.2.17
  k = 1 ./ (1 + 0.2316419 * abs(d));
  w = 1 - exp(-d .* d / 2) / sqrt(2 * pi) .* (0.31938153 * k - 0.356563782 * k .^ 2 ...
      + 1.781477937 * k .^ 3 - 1.821255978 * k .^ 4 + 1.330274429 * k .^ 5);
  c = (d >= 0) .* w + (d < 0) .* (1 - w);
end

function price = call_price(s, x, t, r, v)
  d1 = (log(s ./ x) + (r + v * v / 2) * t) / (v * sqrt(t));
  d2 = d1 - v * sqrt(t);
  price = s .* cumulative(d1) - x * exp(-r * t) .* cumulative(d2);
end

s = linspace(58, 62, 10001);
total = 0;
for day = 1:10
  total = total + mean(call_price(s, 65, day / 365, 0.08, 0.3));
end
printf("%.8f\n", total);
