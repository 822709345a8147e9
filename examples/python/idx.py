"""IDX files, as MNIST and its kin come: images to (n, values) in [0, 1]."""
import gzip
import pathlib

import numpy as np


def read(folder, part):
    """part "train" or "t10k": images (n, d) float32, labels (n) int64."""
    def array(kind):
        name = f"{part}-{kind}-idx*"
        path = next(pathlib.Path(folder).glob(name), None)
        if path is None:
            raise FileNotFoundError(f"{folder} has no {name}: the data set is "
                                    "not there, or in another folder")
        data = gzip.open(path).read()
        sizes = np.frombuffer(data, ">u4", count=data[3], offset=4)
        return np.frombuffer(data, np.uint8,
                             offset=4 + 4 * data[3]).reshape(sizes)
    images, labels = array("images"), array("labels")
    return (images.reshape(len(images), -1).astype(np.float32) / 255,
            labels.astype(np.int64))
