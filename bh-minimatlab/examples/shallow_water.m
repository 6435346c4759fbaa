% Shallow water in a square basin, by the method of Lax and Friedrichs on periodic borders.
n = 64;
x = linspace(-1, 1, n);
h = 1 + 0.4 * exp(-10 * (x .^ 2 + (x') .^ 2));
u = zeros(n, n);
v = zeros(n, n);
g = 9.81; dt = 0.002; dx = 2 / n;
up = [n, 1:n-1]; down = [2:n, 1];
for step = 1:20
  hu = h .* u; hv = h .* v;
  fx = hu .* u + g * h .^ 2 / 2;
  fy = hv .* v + g * h .^ 2 / 2;
  fxy = hu .* v;
  near = @(a) (a(up, :) + a(down, :) + a(:, up) + a(:, down)) / 4;
  ddx = @(a) (a(:, down) - a(:, up)) / (2 * dx);
  ddy = @(a) (a(down, :) - a(up, :)) / (2 * dx);
  hn = near(h) - dt * (ddx(hu) + ddy(hv));
  hun = near(hu) - dt * (ddx(fx) + ddy(fxy));
  hvn = near(hv) - dt * (ddx(fxy) + ddy(fy));
  h = hn;
  u = hun ./ hn;
  v = hvn ./ hn;
end
printf("%.6f %.6f %.6f\n", sum(sum(h)), max(max(h)), max(max(abs(u))));
