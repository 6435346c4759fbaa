% Waves in a square basin: the shallow water equations by the method of Lax and Wendroff. A drop falls into the basin; its
% walls reflect the waves. Columns are rows of the C++ version, whose arrays are stored row by row.
1;
% What flows through a point in a direction: of the momentum in it, and of the momentum across it.
function [along_flow, across_flow] = flux(height, along, across)
  along_flow = along .* along ./ height + 0.5 * 9.8 * height .* height;
  across_flow = along .* across ./ height;
end

% Half a step, at the middles between columns and between rows.
function q = half_x(q, f)
  q = 0.5 * (q(2:end-1, 2:end) + q(2:end-1, 1:end-1)) - 0.02 / 2 * (f(2:end-1, 2:end) - f(2:end-1, 1:end-1));
end
function q = half_y(q, f)
  q = 0.5 * (q(2:end, 2:end-1) + q(1:end-1, 2:end-1)) - 0.02 / 2 * (f(2:end, 2:end-1) - f(1:end-1, 2:end-1));
end

% The whole step, with the flows at those middles.
function d = advance(x, y)
  d = 0.02 * (x(:, 2:end) - x(:, 1:end-1) + y(2:end, :) - y(1:end-1, :));
end
function [dh, du, dv] = changes(h, u, v)
  [fx_along, fx_across] = flux(h, u, v);
  [fy_along, fy_across] = flux(h, v, u);
  height = half_x(h, u); momentum = half_x(u, fx_along);
  [gx_along, gx_across] = flux(height, momentum, half_x(v, fx_across));
  gx_height = momentum;
  height = half_y(h, v); momentum = half_y(v, fy_along);
  [gy_along, gy_across] = flux(height, momentum, half_y(u, fy_across));
  dh = advance(gx_height, momentum);
  du = advance(gx_along, gy_across);
  dv = advance(gx_across, gy_along);
end

if ! exist("n", "var"), n = 64; steps = 20; end
x = linspace(-3, 3, n)';
y = x';
h = zeros(n + 2, n + 2) + 1;
u = zeros(n + 2, n + 2);
v = zeros(n + 2, n + 2);
h(2:end-1, 2:end-1) += exp(-(x .* x + y .* y)) * 0.5;
tic
for step = 1:steps
  % Walls: heights continue, the momentum across the wall turns round.
  h(:, 1) = h(:, 2); h(:, end) = h(:, end-1); h(1, :) = h(2, :); h(end, :) = h(end-1, :);
  u(:, 1) = -u(:, 2); u(:, end) = -u(:, end-1); u(1, :) = u(2, :); u(end, :) = u(end-1, :);
  v(:, 1) = v(:, 2); v(:, end) = v(:, end-1); v(1, :) = -v(2, :); v(end, :) = -v(end-1, :);
  [dh, du, dv] = changes(h, u, v);
  h(2:end-1, 2:end-1) -= dh;
  u(2:end-1, 2:end-1) -= du;
  v(2:end-1, 2:end-1) -= dv;
end
seconds = toc;
printf("%.6f %.6f %.6f\n", sum(sum(h)), max(max(h)), max(max(abs(u))));
