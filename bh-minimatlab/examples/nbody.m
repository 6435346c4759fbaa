% Bodies that attract each other: all pairs at once.
n = 40;
i = (1:n)';
x = sin(i); y = cos(2 * i); z = sin(3 * i);
m = 1 + mod(i, 3);
vx = zeros(n, 1); vy = zeros(n, 1); vz = zeros(n, 1);
dt = 0.001;
for step = 1:20
  dx = x' - x; dy = y' - y; dz = z' - z;
  r = sqrt(dx .^ 2 + dy .^ 2 + dz .^ 2 + 0.01);
  f = repmat(m', n, 1) ./ r .^ 3;
  vx = vx + dt * sum(f .* dx, 2);
  vy = vy + dt * sum(f .* dy, 2);
  vz = vz + dt * sum(f .* dz, 2);
  x = x + dt * vx; y = y + dt * vy; z = z + dt * vz;
end
printf("%.6f %.6f %.6f\n", sum(x), sum(y), sum(m .* (vx .^ 2 + vy .^ 2 + vz .^ 2)) / 2);
