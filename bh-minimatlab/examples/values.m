% What values look like.
x = 3
y = [1 2; -3 4]
z = [0.5; -0.25]
y'
y * [1; 1]
y(2, :)
y(end, end)
y(y > 1)
a = 1:5;
a(2) = []
a(6) = 9
b = a > 3
c = 0.01
d = 12345.678
any(b), all(b)
[m, i] = max([3 9 4])
sort([3 1 2], "descend")
cumsum([1 2; 3 4])
reshape(1:6, 2, 3)
repmat([1 2], 2, 2)
find([0 1 0 1])
eye(2) + 0
mod(-7:3:5, 4)
s = ['abc', 'def']
disp(pi)
num2str(pi, 8)
fprintf('%d: %5.2f\n', [1 2; 0.5 0.25]);
k = zeros(2, 0)
for c = [1 2; 3 4]
  disp(c')
end
do
  x--;
until x < 1
x
[1 2 3] == [1 5 3]
f = @(t) t .^ 2;
f(1:3)
min([4 2; 1 8])
mean([1 2; 3 4], 2)
2 ^ -1
-2 ^ 2
[2 0; 0 4] \ [2; 4]
