% Heat in a plate: each point becomes the mean of itself and its neighbours, until little changes.
n = 60;
grid = zeros(n + 2, n + 2);
grid(:, 1) = -273.15;
grid(:, end) = -273.15;
grid(end, :) = -273.15;
grid(1, :) = 40;
delta = 1e9;
steps = 0;
while delta > 1
  work = 0.2 * (grid(2:end-1, 2:end-1) + grid(1:end-2, 2:end-1) + grid(3:end, 2:end-1) ...
                + grid(2:end-1, 1:end-2) + grid(2:end-1, 3:end));
  delta = sum(sum(abs(grid(2:end-1, 2:end-1) - work)));
  grid(2:end-1, 2:end-1) = work;
  steps++;
  if steps >= 200
    break
  end
end
printf("%d steps, mean %.6f\n", steps, mean(mean(grid)));
