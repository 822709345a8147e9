/* One self-contained page: styles, data, dygraphs and the page's own script.
 *
 * The page's policy allows the two scripts below by their SHA-256 and nothing
 * else: were a hostile name ever to reach the markup, it still could not run
 * or load anything. */
#include "src/results/report/page.h"

#include <sodium.h>

#include "kith/asset.h"

KITH_ASSET(dygraph_script, KITH_DYGRAPHS "/dygraph.min.js");
KITH_ASSET(dygraph_style, KITH_DYGRAPHS "/dygraph.min.css");
KITH_ASSET(dygraph_licence, KITH_REPORT_SOURCE "/dygraphs-licence.txt");
KITH_ASSET(page_script, KITH_REPORT_SOURCE "/page.js");
KITH_ASSET(page_style, KITH_REPORT_SOURCE "/page.css");

static void put(FILE *out, struct kith_asset asset)
{
    fwrite(asset.bytes, 1, asset.size, out);
}

static void put_hash(FILE *out, struct kith_asset script)
{
    unsigned char hash[crypto_hash_sha256_BYTES];
    char text[sodium_base64_ENCODED_LEN(sizeof hash,
                                        sodium_base64_VARIANT_ORIGINAL)];

    crypto_hash_sha256(hash, (const unsigned char *)script.bytes, script.size);
    sodium_bin2base64(text, sizeof text, hash, sizeof hash,
                      sodium_base64_VARIANT_ORIGINAL);
    fprintf(out, " 'sha256-%s'", text);
}

void kith_page_begin(FILE *out)
{
    fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n"
          "<meta charset=\"utf-8\">\n"
          "<meta name=\"viewport\" content=\"width=device-width\">\n"
          "<meta http-equiv=\"Content-Security-Policy\" content=\""
          "default-src 'none'; style-src 'unsafe-inline'; script-src",
          out);
    put_hash(out, kith_asset_dygraph_script());
    put_hash(out, kith_asset_page_script());
    fputs("\">\n<title>kith report</title>\n<!--\n", out);
    put(out, kith_asset_dygraph_licence());
    fputs("-->\n<style>", out);
    put(out, kith_asset_dygraph_style());
    fputs("</style>\n<style>\n", out);
    put(out, kith_asset_page_style());
    fputs("</style>\n</head>\n<body>\n<noscript>This page draws its plots with "
          "its own script: please allow it. It loads nothing.</noscript>\n"
          "<script type=\"application/json\" id=\"kith-data\">",
          out);
}

void kith_page_end(FILE *out)
{
    fputs("</script>\n<script>", out);
    put(out, kith_asset_dygraph_script());
    fputs("</script>\n<script>", out);
    put(out, kith_asset_page_script());
    fputs("</script>\n</body>\n</html>\n", out);
}
