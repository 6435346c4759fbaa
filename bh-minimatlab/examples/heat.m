% Heat in a square plate with fixed borders, by Jacobi iteration: the program of the Bohrium papers.
% Columns are rows of the C++ version, whose arrays are stored row by row.
if ! exist("n", "var"), n = 60; steps = 200; end
epsilon = 1e-3;
grid = zeros(n, n);
grid(1, :) = -273.15;
grid(end, :) = -273.15;
grid(:, end) = -273.15;
grid(:, 1) = 40;
tic
delta = epsilon + 1;
for step = 1:steps
  if delta <= epsilon
    break
  end
  next = 0.2 * (grid(2:end-1, 2:end-1) + grid(2:end-1, 1:end-2) + grid(3:end, 2:end-1) ...
                + grid(1:end-2, 2:end-1) + grid(2:end-1, 3:end));
  delta = sum(sum(abs(next - grid(2:end-1, 2:end-1))));
  grid(2:end-1, 2:end-1) = next;
end
seconds = toc;
printf("change %.6f, mean %.6f\n", delta, mean(mean(grid)));
