"""How strong each corruption is at severity 1 to 5: the parameters that made CIFAR-10-C, and where ours differ.

They hold for 32x32 pixels. Lengths (blur radii, flake sizes, displacements) are multiplied by
``max(1, min(H, W) / 32)``: a 224x224 image is blurred seven times as wide and looks as spoilt; smaller images take
the published numbers as they are. Noise, light and compression are per pixel and do not depend on the size.
"""

from __future__ import annotations

Parameters = tuple[float, ...]

SEVERITIES: dict[str, tuple[Parameters, ...]] = {
    # standard deviation
    "gaussian_noise": ((0.04,), (0.06,), (0.08,), (0.09,), (0.10,)),
    # photons per unit of light
    "shot_noise": ((500,), (250,), (100,), (75,), (50,)),
    # fraction of values
    "impulse_noise": ((0.01,), (0.02,), (0.03,), (0.05,), (0.07,)),
    # radius of the disc, standard deviation of the blur that smooths it; published 4: (1, 0.2), less than 3 in larger
    # images, where the disc of 3 is wider than one pixel
    "defocus_blur": ((0.3, 0.4), (0.4, 0.5), (0.5, 0.6), (1.0, 0.3), (1.5, 0.1)),
    # standard deviation of the blur, fraction of pixels displaced, rounds; published: all pixels, at 1, 1, 1, 2, 2
    # rounds, whose distance to the clean image, with our displacement, falls wherever the blur grows alone
    "glass_blur": ((0.05, 0.6, 1), (0.25, 0.8, 1), (0.4, 1, 1), (0.25, 1, 2), (0.4, 1, 3)),
    # standard deviation along the path; the published 4 repeats the 2 of severity 3, its radius far outside the kernel
    "motion_blur": ((1.0,), (1.5,), (2.0,), (2.25,), (2.5,)),
    # largest enlargement, in steps of 0.01
    "zoom_blur": ((1.06,), (1.11,), (1.16,), (1.21,), (1.26,)),
    # mean and standard deviation of the flakes, their size, threshold, motion, fraction of the picture left as it was
    "snow": (
        (0.1, 0.2, 1, 0.6, 3, 0.95), (0.1, 0.2, 1, 0.5, 4, 0.9), (0.15, 0.3, 1.75, 0.55, 4, 0.9),
        (0.25, 0.3, 2.25, 0.6, 6, 0.85), (0.3, 0.3, 1.25, 0.65, 12, 0.8),
    ),
    # weight of the picture, weight of the frost; published 3 to 5: (0.9, 0.4), (0.85, 0.4), (0.75, 0.45), where bright
    # pictures lose as much light as they gain
    "frost": ((1, 0.2), (1, 0.3), (0.95, 0.4), (0.9, 0.5), (0.85, 0.65)),
    # thickness, decay of the roughness from one octave to the next
    "fog": ((0.2, 3), (0.5, 3), (0.75, 2.5), (1, 2), (1.5, 1.75)),
    # light added
    "brightness": ((0.05,), (0.1,), (0.15,), (0.2,), (0.3,)),
    # fraction of the contrast that is left
    "contrast": ((0.75,), (0.5,), (0.4,), (0.3,), (0.15,)),
    # in fractions of the image: displacement, its smoothness, corners of the affine map. The published affine part
    # falls from 0.08 to 0.03 while the displacement grows from 0 to 0.1, so its first severity moves pixels furthest
    "elastic_transform": (
        (0.03, 0.04, 0.02), (0.05, 0.04, 0.03), (0.07, 0.04, 0.04), (0.09, 0.035, 0.05), (0.11, 0.03, 0.06),
    ),
    # fraction of the resolution that is left; ``pixelate`` says what becomes of it in larger images
    "pixelate": ((0.95,), (0.9,), (0.85,), (0.75,), (0.65,)),
    # JPEG quality
    "jpeg_compression": ((80,), (65,), (58,), (50,), (40,)),
}  # fmt: skip
