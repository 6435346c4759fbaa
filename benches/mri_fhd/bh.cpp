// The vector F^H d of a reconstruction of magnetic resonance images: for n voxels a sum over 512 samples.
#include "../common/bh_harness.hpp"

using namespace bench;

const std::int64_t samples = 512;

template <class T> struct program {
    std::vector<array<T>> voxel, sample, phi, d;
    array<T> re, im;

    explicit program(std::int64_t n) {
        for (int axis = 0; axis < 3; axis++) {
            voxel.push_back(pseudo<T>({n}, 50 + axis));
            sample.push_back(pseudo<T>({samples}, 53 + axis));
        }
        for (int part = 0; part < 2; part++) {
            phi.push_back(pseudo<T>({samples}, 56 + part));
            d.push_back(pseudo<T>({samples}, 58 + part));
        }
    }

    void run(std::int64_t iters) {
        for (std::int64_t step = 0; step < iters; step++) {
            auto mu_re = phi[0] * d[0] + phi[1] * d[1];
            auto mu_im = phi[0] * d[1] - phi[1] * d[0];
            auto turned = [&](int axis) { return voxel[axis](all, newaxis) * sample[axis](newaxis, all); };
            auto angle = 6.283185307179586 * (turned(0) + turned(1) + turned(2));
            auto cosine = cos(angle), sine = sin(angle);
            re = sum(mu_re * cosine - mu_im * sine, 1);
            im = sum(mu_im * cosine + mu_re * sine, 1);
        }
    }

    std::vector<double> checksums() const { return {checksum(re), checksum(im)}; }
};

int main(int argc, char **argv) { return bench::run<program>(argc, argv, "mri_fhd", 1); }
