// SPDX-License-Identifier: GPL-3.0-or-later
// Compiles and runs clients in one Java machine. Each line of the input is a client: its source, the
// folder of its libraries, a folder for its classes, and its arguments, separated by tabs. The line
// `end` follows what it prints.

import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Collectors;
import javax.tools.JavaCompiler;
import javax.tools.ToolProvider;

public final class Clients {
    public static void main(String[] none) throws Exception {
        JavaCompiler compiler = ToolProvider.getSystemJavaCompiler();
        BufferedReader asked =
            new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = asked.readLine(); line != null; line = asked.readLine()) {
            String[] given = line.split("\t", -1);
            List<File> places = new ArrayList<>(List.of(
                new File(given[1]).listFiles((folder, name) -> name.endsWith(".jar"))));
            String libraries = places.stream().map(File::getPath)
                .collect(Collectors.joining(File.pathSeparator));
            compiler.run(null, null, null, "-proc:none", "-nowarn", "-cp", libraries, "-d", given[2],
                given[0]);
            places.add(new File(given[2]));
            URL[] addresses = new URL[places.size()];
            for (int number = 0; number < addresses.length; number++) {
                addresses[number] = places.get(number).toURI().toURL();
            }
            ClassLoader loader =
                new URLClassLoader(addresses, ClassLoader.getPlatformClassLoader());
            Thread.currentThread().setContextClassLoader(loader);
            loader.loadClass("Client").getMethod("main", String[].class)
                .invoke(null, (Object) Arrays.copyOfRange(given, 3, given.length));
            System.out.println("end");
        }
        System.exit(0);
    }
}
