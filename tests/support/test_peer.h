/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RUNNEL_TESTS_TEST_PEER_H
#define RUNNEL_TESTS_TEST_PEER_H

#include <runnel/rt.h>

/*
 * Opens a second device beside `device`: of another platform where there is one, else of the same, else the same once
 * more in a context of its own.
 */
rnl_device *test_open_peer(const rnl_device *device);

#endif
