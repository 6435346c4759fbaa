% Bodies that attract each other: all forces of all pairs.
1;
% Numbers from 0 to 1 that look random.
function values = pseudo(count, seed)
  prime = 100019;
  root = mod((0:count-1)' + seed * 33391, prime);
  values = mod(mod(root .* root, prime) .* root, prime) / prime;
end

% What a step changes of the velocities, by columns.
function [ax, ay, az] = pulls(x, y, z, mass)
  dx = x - x'; dy = y - y'; dz = z - z';
  square = dx .* dx + dy .* dy + dz .* dz + 0.01;
  pull = mass ./ (square .* sqrt(square));
  ax = sum(pull .* dx)'; ay = sum(pull .* dy)'; az = sum(pull .* dz)';
end

if ! exist("n", "var"), n = 40; steps = 20; end
dt = 0.0001;
mass = 1 + pseudo(n, 15);
x = pseudo(n, 16); y = pseudo(n, 17); z = pseudo(n, 18);
u = zeros(n, 1); v = zeros(n, 1); w = zeros(n, 1);
tic
for step = 1:steps
  [ax, ay, az] = pulls(x, y, z, mass);
  u += dt * ax; v += dt * ay; w += dt * az;
  x += dt * u; y += dt * v; z += dt * w;
end
seconds = toc;
printf("%.6f %.6f %.6f\n", sum(x), sum(y), sum(mass .* (u .^ 2 + v .^ 2 + w .^ 2)) / 2);
